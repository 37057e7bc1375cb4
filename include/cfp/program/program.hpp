// The lowered program: what every rank runs, in order. The only thing that is priced, printed, simulated or run.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/model/graph.hpp>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1 {

/// A piece of memory holding one tensor in one partition.
struct buffer {
  int value = -1;
  partition held;
  extents local;                 ///< shape on one device
  element type = element::real;  ///< wide only where that is more than a number takes
  long bytes = 0;                ///< on one device
  int root = -1;                 ///< buffer whose memory this one shares (itself, if none)
  bool persistent = false;       ///< lives across steps (weights, states) or is given from outside (inputs)
  bool on_host = false;          ///< in memory of the host, which devices only carry to and from
  bool left_over = false;        ///< what a compressed sum keeps for its next run: no value's, zero before the first
  int pass = -1;                 ///< the micro-batch it is of, where all are in the code (`program_slot`); else -1
  long offset = -1;              ///< in the arena, after `plan_memory`; persistent buffers have none

  int view = -1;   ///< how it walks the root's memory, by number among the program's; -1: neighbours follow one another
  long first = 0;  ///< where in the root's memory it begins, in elements

  constexpr bool is_view() const { return view >= 0; }
};

/// Dimensions of a tensor from the outermost, and how far a step along each moves in memory; in elements.
struct memory_view {
  extents size{}, step{};

  /// How far in memory a step along a factor moves that in order would move by `in_order`; -1 if no one step does.
  constexpr long step_of(long in_order, long factor_size) const {
    if (factor_size == 1) return 0;
    long inner = 1;
    for (int d = size.size() - 1; d >= 0; inner *= size[d--])
      if (in_order >= inner && in_order % inner == 0 && in_order * factor_size <= inner * size[d])
        return step[d] * (in_order / inner);
    return -1;
  }
};

/// Buffers by number, as many as there are. Few, as most instructions have, take no memory of their own.
class buffer_numbers {
 public:
  constexpr int size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr void push(int b) {
    if (count_ < room) {
      few_[count_++] = b;
      return;
    }
    if (count_++ == room) many_.assign(few_, few_ + room);
    many_.push_back(b);
  }
  /// In place: to nvcc an assignment of these is no constant.
  template <class Keep>
  constexpr void keep_if(Keep keep) {
    int left = 0;
    for (int k = 0; k < count_; ++k)
      if (const int b = (*this)[k]; keep(b)) (*this)[left++] = b;
    if (count_ > room && left > room) many_.resize(static_cast<std::size_t>(left));
    if (count_ > room && left <= room) {
      for (int k = 0; k < left; ++k) few_[k] = (*this)[k];
      many_.clear();
    }
    count_ = left;
  }
  constexpr int& operator[](int k) { return count_ <= room ? few_[k] : many_[static_cast<std::size_t>(k)]; }
  constexpr int operator[](int k) const { return begin()[k]; }
  constexpr const int* begin() const { return count_ <= room ? few_ : many_.data(); }
  constexpr const int* end() const { return begin() + count_; }

 private:
  static constexpr int room = 4;
  int few_[static_cast<std::size_t>(room)]{};
  int count_ = 0;
  std::vector<int> many_;  // all, where they are more
};

struct instruction {
  enum kind_t : std::uint8_t {
    compute,
    reshard,
    carry,    ///< between memory of the host and of the device
    narrow,   ///< makes numbers that products read from the wide ones weights rest in: out[k] from in[k]
    send,     ///< to the rank that is elsewhere on the first axis of the mesh, along which stages lie
    receive,  ///< from it
    hand      ///< a scan: what a position leaves goes on to the next, and on a split factor to the next rank
  } kind = compute;
  int op = -1;           ///< the operation of the graph; else the one that wants the result first
  assignment assigned;   ///< compute: what it splits
  conversion_step step;  ///< reshard
  buffer_numbers in;     ///< buffers read
  buffer_numbers out;    ///< buffers written; a conversion's scratch follows its result
  bool again = false;    ///< of forward, once more before the backward operation that needs what was not kept
  bool nothing = false;  ///< the result is the operand's memory, as it is
  bool beside = false;   ///< runs on a stream beside that of operators, in order with others there (`schedule`)
  int with = -1;         ///< send, receive: where that is; hand: the axis that splits what is scanned, or -1
  int fusion = -1;       ///< several operators in one (`fuse`): which of the program's; `op` is the last of them

  constexpr bool is_operator() const { return kind == compute || kind == hand; }
  constexpr bool communicates() const {
    return (kind == reshard && step.communicates()) || (kind == hand && with >= 0);
  }
  constexpr bool crosses() const { return kind == send || kind == receive; }
  constexpr bool sends() const { return kind == send; }
  constexpr int crossed() const { return sends() ? in[0] : out[0]; }  ///< the buffer of one that does
  /// Whether it may run beside operators: it takes no processors to speak of.
  constexpr bool may_run_beside() const { return communicates() || kind == carry || crosses(); }
};

/// Operators that one kernel computes together: one after another by a pattern, or the same one on many tensors.
struct fusion {
  std::string_view label;          ///< of the pattern they follow, or the operator's
  int pattern = -1;                ///< its number; -1: the same operator on many tensors (`fuse_same`)
  std::vector<instruction> parts;  ///< as they were, of the whole pattern
  int first = 0, end = 0;          ///< those of this instruction
  std::vector<int> outside;        ///< buffers that come from outside, by the pattern's numbers
};

/// Where a program begins with what a stage does for a micro-batch, or with what it does after all of them.
struct program_slot {
  int first = 0;        ///< instruction
  int pass = 0;         ///< the micro-batch
  bool begins = false;  ///< sums over micro-batches begin with it
};

struct program {
  mesh_shape mesh;
  std::vector<buffer> buffers;
  std::vector<memory_view> views;
  std::vector<instruction> code;
  std::vector<fusion> fusions;
  long real_bytes = 4;  ///< of a number that is not wide
  int loss = -1;        ///< buffer of the loss, complete on every rank, or -1
  long arena_bytes = 0;
  int passes = 1;          ///< how often instructions [begin, end) run in a step, once per micro-batch
  int begin = 0, end = 0;  ///< the others, before and after, run once
  std::vector<program_slot>
      slots{};    ///< of stages of a pipeline (`lower_stages`): the code has all passes, and runs once
  int place = 0;  ///< along the stages

  constexpr bool has_all_passes() const { return !slots.empty(); }
  /// The first slot that does not begin before an instruction.
  auto slot_from(int instruction) const {
    return std::lower_bound(slots.begin(), slots.end(), instruction,
                            [](const program_slot& s, int i) { return s.first < i; });
  }

  constexpr buffer& operator[](int b) { return buffers[static_cast<std::size_t>(b)]; }
  constexpr const buffer& operator[](int b) const { return buffers[static_cast<std::size_t>(b)]; }

  /// Whether an instruction puts on the host what backward reads of forward: there is no hurry, but for its memory.
  constexpr bool sets_aside(const instruction& i) const {
    return i.kind == instruction::carry && (*this)[i.out[0]].on_host && !(*this)[i.out[0]].persistent;
  }

  /// The operators of an instruction that computes: itself, or those fused in it.
  constexpr std::span<const instruction> parts(const instruction& i) const {
    if (i.fusion < 0) return {&i, 1};
    const fusion& f = fusions[static_cast<std::size_t>(i.fusion)];
    return std::span(f.parts).subspan(static_cast<std::size_t>(f.first), static_cast<std::size_t>(f.end - f.first));
  }

  /// How often an instruction runs in a step.
  constexpr int runs(std::size_t instruction) const {
    const bool often = !has_all_passes() && static_cast<int>(instruction) >= begin;
    return often && static_cast<int>(instruction) < end ? passes : 1;
  }

  /// Of the device.
  constexpr long persistent_bytes() const {
    long n = 0;
    for (const buffer& b : buffers)
      if (b.persistent && !b.on_host && b.root == &b - buffers.data()) n += b.bytes;
    return n;
  }
  /// In memory of the host: state, and of forward what backward reads.
  constexpr long host_bytes(bool of_state, bool of_forward) const {
    long n = 0;
    for (const buffer& b : buffers) n += b.on_host && (b.persistent ? of_state : of_forward) ? b.bytes : 0;
    return n;
  }
};

}  // namespace cfp
