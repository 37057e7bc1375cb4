// The order of a program: conversions begin as early as that pays, and collectives may run beside the work that follows
// them.
#pragma once

#include <cfp/program/readers.hpp>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct schedule {
  bool early =
      true;  ///< what is reduced or cut is so as soon as it is there: gradients need not wait whole for their update
  bool overlap =
      false;      ///< collectives run on a stream of their own, in order, beside the operators that do not need them
  int ahead = 1;  ///< with overlap: how many gathers may be under way before the first of them is needed
};

/// Streams beside that of operators: one of collectives and what is carried, one of receives, one of sends.
inline constexpr int streams_beside = 3;
inline int stream_of(const instruction& i) {
  return i.kind == instruction::send ? 2 : i.kind == instruction::receive ? 1 : 0;
}

/// What the streams of a program wait for. What runs beside waits for all operators before it in the program, for what
/// is before it on its stream, and for the last on each other stream whose memory it touches; an operator for the last
/// on each stream whose memory it touches, and, where something is on its way to the host or to another stage, for what
/// went there before, in slots before that of the last send: so its memory is free from then on.
struct stream_order {
  /// Per instruction, of each stream the last that must be done, or -1.
  std::vector<std::array<int, streams_beside>> waits_for;
  std::vector<int> joined;  ///< per one that runs beside: the first operator that is known to follow its end
};

namespace detail {

class ordering {
 public:
  explicit ordering(const program& p) : p_(p), roots_(roots_of(p)) {
    out_.waits_for.resize(p.code.size(), none());
    out_.joined.assign(p.code.size(), -1);
    for (stream& s : streams_) s.touched.assign(p.buffers.size(), -1);
  }

  stream_order run() {
    auto slot = p_.slots.begin();
    for (int i = 0; i < static_cast<int>(p_.code.size()); ++i) {
      while (slot != p_.slots.end() && slot->first <= i) ++slot;
      if (i == p_.begin || i == p_.end) join_all(i);  // nothing is under way from one pass to the next
      const instruction& c = p_.code[at(i)];
      std::array<int, streams_beside>& last = out_.waits_for[at(i)];
      const int own = c.beside ? stream_of(c) : -1;
      for (int n = 0; n < streams_beside; ++n)
        if (n != own) last[at(n)] = last_touching(c, streams_[at(n)]);
      if (c.beside) {
        stream& mine = streams_[at(own)];
        each(c, [&](std::size_t b) { mine.touched[b] = i; });
        mine.beside.push_back(i);
        if (p_.sets_aside(c)) gone_[0].add(i, i);
        else if (c.sends()) gone_[at(own)].add(i, static_cast<int>(slot - p_.slots.begin()));
        continue;
      }
      for (int n = 0; n < streams_beside; ++n)
        if (streams_[at(n)].has(gone_[at(n)].before)) last[at(n)] = std::max(last[at(n)], gone_[at(n)].before);
      for (int n = 0; n < streams_beside; ++n) join(n, last[at(n)], i);
    }
    join_all(static_cast<int>(p_.code.size()));
    return std::move(out_);
  }

 private:
  struct stream {
    std::vector<int> touched, beside;  // per root the last that does; all, in order
    std::size_t first = 0;             // of those that are under way
    bool has(int instruction) const { return first < beside.size() && instruction >= beside[first]; }
  };
  struct departures {                        // of one stream
    int last = -1, group = -1, before = -1;  // what went last, what with, and what before that
    void add(int instruction, int of_group) {
      if (of_group != group) before = last;
      last = instruction, group = of_group;
    }
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  static constexpr std::array<int, streams_beside> none() { return {-1, -1, -1}; }

  template <class F>
  void each(const instruction& c, const F& f) const {
    for (const buffer_numbers* some : {&c.in, &c.out})
      for (const int b : *some) f(at(roots_[at(b)]));
  }
  int last_touching(const instruction& c, const stream& s) const {
    int last = -1;
    if (s.first < s.beside.size())
      each(c, [&](std::size_t b) {
        if (s.has(s.touched[b])) last = std::max(last, s.touched[b]);
      });
    return last;
  }
  // What has ended has had what it waited for.
  void join(int of, int upto, int by) {
    stream& s = streams_[at(of)];
    while (s.first < s.beside.size() && s.beside[s.first] <= upto) {
      const std::size_t ended = at(s.beside[s.first++]);
      out_.joined[ended] = by;
      for (int n = 0; n < streams_beside; ++n) join(n, out_.waits_for[ended][at(n)], by);
    }
  }
  void join_all(int by) {
    for (int n = 0; n < streams_beside; ++n) join(n, by, by);
  }

  const program& p_;
  const std::vector<int> roots_;
  std::array<stream, streams_beside> streams_;
  std::array<departures, streams_beside> gone_;
  stream_order out_;
};

}  // namespace detail

inline stream_order order_of(const program& p) { return detail::ordering(p).run(); }

namespace detail {

// Per instruction the first of those it may change places with: not with what runs less often, nor with what another
// stage or micro-batch has to do.
inline std::vector<int> ranges_of(const program& p) {
  std::vector<int> out(p.code.size());
  auto slot = p.slots.begin();
  int first = 0;
  for (int i = 0; i < static_cast<int>(out.size()); ++i) {
    const bool apart =
        i > 0 && (p.code[static_cast<std::size_t>(i)].crosses() || p.code[static_cast<std::size_t>(i) - 1].crosses());
    if (i == p.begin || i == p.end || apart) first = i;
    for (; slot != p.slots.end() && slot->first == i; ++slot) first = i;
    out[static_cast<std::size_t>(i)] = first;
  }
  return out;
}

}  // namespace detail

/// Puts the instructions of a lowered program in that order. Before its memory is planned.
inline void apply(const schedule& s, program& p) {
  const int size = static_cast<int>(p.code.size());
  std::vector<int> written(p.buffers.size(), -1);  // by root: the last instruction that wrote it
  std::vector<double> place(p.code.size());        // instructions are sorted by this
  std::vector<int> gathers;
  const std::vector<int> range = detail::ranges_of(p);
  std::vector<bool> feeds(p.code.size());  // a local step that a collective follows
  {
    std::vector<int> made_by(p.buffers.size(), -1);
    for (int i = 0; i < size; ++i) {
      const instruction& c = p.code[static_cast<std::size_t>(i)];
      if (c.crosses()) continue;
      if (c.communicates())
        for (int at = made_by[static_cast<std::size_t>(c.in[0])]; at >= 0 && !feeds[static_cast<std::size_t>(at)];
             at = made_by[static_cast<std::size_t>(p.code[static_cast<std::size_t>(at)].in[0])])
          feeds[static_cast<std::size_t>(at)] = true;
      if (c.kind != instruction::compute && !p.sets_aside(c)) made_by[static_cast<std::size_t>(c.out[0])] = i;
    }
  }
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const instruction& c = p.code[at];
    place[at] = i;
    const bool communicates = c.may_run_beside();
    if (c.kind != instruction::compute && !c.crosses() && (communicates || feeds[at]) && !p.sets_aside(c)) {
      double earliest = range[at] - 0.5;
      for (const int b : c.in)
        if (const int w = written[static_cast<std::size_t>(p[b].root)]; w >= 0)
          earliest = std::max(earliest, place[static_cast<std::size_t>(w)]);
      const bool grows = c.kind == instruction::narrow || p[c.in[0]].on_host || p[c.out[0]].bytes > p[c.in[0]].bytes;
      if (grows || !communicates) {  // no earlier than where the gather before it, or so many before it, was needed
        const auto before = static_cast<std::size_t>(std::max(1, s.ahead));
        const double bound = !s.overlap                 ? i
                             : gathers.size() >= before ? gathers[gathers.size() - before]
                                                        : range[at] - 0.5;
        earliest = std::max(earliest, bound);
        if (communicates) gathers.push_back(i);
      } else if (!s.early) {
        earliest = i;
      }
      place[at] = std::min(earliest, place[at]);
    }
    for (const int b : c.out) written[static_cast<std::size_t>(p[b].root)] = i;
  }
  std::vector<int> order(p.code.size());
  for (int i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return place[static_cast<std::size_t>(a)] < place[static_cast<std::size_t>(b)];
  });
  std::vector<instruction> code;
  code.reserve(p.code.size());
  for (const int i : order) {
    code.push_back(std::move(p.code[static_cast<std::size_t>(i)]));
    instruction& c = code.back();
    c.beside = c.crosses() || (s.overlap && c.may_run_beside());
  }
  p.code = std::move(code);
}

}  // namespace cfp
