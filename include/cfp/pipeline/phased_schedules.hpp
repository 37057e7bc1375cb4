// Schedules of three phases: each rank runs some micro-batches forward, then one backward for each forward, then the
// rest backward. GPipe (arXiv 1811.06965), 1F1B as of DAPPLE (arXiv 2007.01045), interleaved (arXiv 2104.04473),
// TeraPipe (arXiv 2102.07988) and Seq1F1B (arXiv 2406.03488) of slices, zero bubble (arXiv 2401.10241), PipeDream
// (arXiv 1806.03377) and PipeDream-2BW (arXiv 2006.09503) differ in how many are first, in updates, and in whether
// backward is one.
#pragma once

#include <cfp/pipeline/pipeline_schedule.hpp>

#include <algorithm>
#include <functional>

namespace cfp::inline v0_1 {

namespace detail {

struct phases {
  int ranks = 1, micro_batches = 1;
  int chunks = 1;                            // stages of a rank: of rank r those it is the remainder of
  int slices = 1;                            // of a micro-batch, where chunks is 1
  std::function<int(int rank)> first;        // how many run forward before the first backward
  bool last_first = false;                   // backward begins with the micro-batch that came last
  int batch = 0;                             // micro-batches of an update
  std::function<int(int rank)> behind = {};  // if given, backward for weights stands that many behind that for inputs
};

class phased_rank {
 public:
  phased_rank(const phases& p, int rank)
      : p_(p), rank_(rank), counted_(static_cast<std::size_t>(p.chunks * p.slices)) {}

  std::vector<slot> slots() {
    const int all = p_.chunks * p_.slices * p_.micro_batches, first = std::clamp(p_.first(rank_), 0, all);
    const int behind = p_.behind ? p_.behind(rank_) : 0;
    int forward = 0;
    while (forward < first) out_.push_back(nth(slot::forward, forward++));
    for (int k = 0; k < all + behind; ++k) {
      if (forward < all) out_.push_back(nth(slot::forward, forward++));
      if (k < all) out_.push_back(nth(p_.behind ? slot::backward_inputs : slot::backward, k));
      if (p_.behind && k >= behind) out_.push_back(nth(slot::backward_weights, k - behind));
      if (k >= behind) count(out_.back());
    }
    return std::move(out_);
  }

 private:
  // As many micro-batches as there are ranks go through one stage of a rank after the other.
  slot nth(slot::kind_t kind, int k) const {
    const bool back = kind != slot::forward;
    if (p_.slices > 1) {  // backward begins with a micro-batch's last slice, which sees all others
      const int m = k / p_.slices, n = k % p_.slices, slice = back ? p_.slices - 1 - n : n;
      return {kind, rank_ * p_.slices + slice, back && p_.last_first ? p_.micro_batches - 1 - m : m};
    }
    const int chunk = k / p_.ranks % p_.chunks, round = k / (p_.ranks * p_.chunks);
    const int m = p_.chunks == 1 ? k : round * p_.ranks + k % p_.ranks;
    const int of = p_.chunks == 1 ? 0 : back ? p_.chunks - 1 - chunk : chunk;
    return {kind, of * p_.ranks + rank_, back && p_.last_first ? p_.micro_batches - 1 - m : m};
  }
  void count(slot done) {
    const int mine = p_.slices > 1 ? done.stage % p_.slices : done.stage / p_.ranks;
    if (++counted_[static_cast<std::size_t>(mine)] % p_.batch == 0)
      out_.push_back({slot::update, done.stage, done.micro_batch});
  }

  const phases& p_;
  int rank_;
  std::vector<int> counted_;  // micro-batches that are over, of each stage
  std::vector<slot> out_;
};

inline pipeline_schedule in_phases(std::string name, const phases& p) {
  if (p.ranks < 1 || p.micro_batches < 1 || p.chunks < 1 || p.slices < 1 || p.batch < 1)
    throw bad_input("schedule " + name + " of " + std::to_string(p.ranks) + " ranks, " +
                    std::to_string(p.micro_batches) + " micro-batches, " + std::to_string(p.chunks) +
                    " stages for each rank, " + std::to_string(p.slices) + " slices and " + std::to_string(p.batch) +
                    " micro-batches for an update: one of each at least is needed");
  if (p.chunks > 1 && p.micro_batches % p.ranks != 0)
    throw bad_input("schedule " + name + ": " + std::to_string(p.micro_batches) + " micro-batches on " +
                    std::to_string(p.ranks) + " ranks with " + std::to_string(p.chunks) +
                    " stages each: their number must be a multiple of the ranks'");
  if (static_cast<long>(p.ranks) * p.chunks * p.slices * p.micro_batches > most_slots)
    throw bad_input("schedule " + name + " of " + std::to_string(p.ranks) + " ranks, " +
                    std::to_string(p.micro_batches) + " micro-batches, " + std::to_string(p.chunks) +
                    " stages for each rank and " + std::to_string(p.slices) +
                    " slices: the product of these is at most " + std::to_string(most_slots));
  if (p.micro_batches % p.batch != 0)
    throw bad_input("schedule " + name + ": " + std::to_string(p.micro_batches) + " micro-batches in steps of " +
                    std::to_string(p.batch) + ": their number must be a multiple of that");
  pipeline_schedule out{std::move(name), p.ranks * p.chunks * p.slices, p.micro_batches, {},
                        p.batch,         weights_read::stashed,         p.slices};
  for (int r = 0; r < p.ranks; ++r) out.ranks.push_back(phased_rank(p, r).slots());
  return out;
}

}  // namespace detail

/// All forward, then all backward.
inline pipeline_schedule gpipe(int stages, int micro_batches) {
  return detail::in_phases("gpipe",
                           {stages, micro_batches, 1, 1, [=](int) { return micro_batches; }, true, micro_batches});
}

/// One forward, one backward: a stage begins backward as soon as it can.
inline pipeline_schedule one_forward_one_backward(int stages, int micro_batches) {
  return detail::in_phases("1f1b",
                           {stages, micro_batches, 1, 1, [=](int r) { return stages - r - 1; }, false, micro_batches});
}

/// The same with several stages for each rank, in rounds: rank r has stages r, r + ranks, ... `micro_batches` is a
/// multiple of `ranks` (bad_input).
inline pipeline_schedule interleaved(int ranks, int chunks, int micro_batches) {
  if (chunks == 1) return one_forward_one_backward(ranks, micro_batches);
  return detail::in_phases("interleaved",
                           {ranks, micro_batches, chunks, 1,
                            [=](int r) { return 2 * (ranks - r - 1) + (chunks - 1) * ranks; }, false, micro_batches});
}

/// GPipe of slices of a sequence: a micro-batch goes through the stages in `slices` parts, each of which sees those
/// before it, and back from the last (TeraPipe).
inline pipeline_schedule terapipe(int stages, int micro_batches, int slices) {
  return detail::in_phases(
      "terapipe", {stages, micro_batches, 1, slices, [=](int) { return micro_batches * slices; }, true, micro_batches});
}

/// 1F1B of slices: a stage begins backward with the last slice of a micro-batch as soon as it can (Seq1F1B).
inline pipeline_schedule sequence_1f1b(int stages, int micro_batches, int slices) {
  return detail::in_phases("seq1f1b", {stages, micro_batches, 1, slices,
                                       [=](int r) { return stages - r - 1 + slices - 1; }, false, micro_batches});
}

/// Backward in two halves, so that stage s waits less: what the stage before it needs first, the rest s micro-batches
/// behind (ZB-H1). Each rank keeps as many micro-batches as there are stages, where 1f1b does so on the first alone.
inline pipeline_schedule zero_bubble_h1(int stages, int micro_batches) {
  return detail::in_phases("zb_h1", {stages, micro_batches, 1, 1, [=](int r) { return stages - r - 1; }, false,
                                     micro_batches, [](int r) { return r; }});
}

/// The same with more micro-batches under way, 2 stages - 1, and then no rank waits (ZB-H2).
inline pipeline_schedule zero_bubble_h2(int stages, int micro_batches) {
  return detail::in_phases("zb_h2", {stages, micro_batches, 1, 1, [=](int r) { return 2 * (stages - r - 1); }, false,
                                     micro_batches, [](int r) { return 2 * r; }});
}

namespace detail {
inline pipeline_schedule unbroken(const char* name, int stages, int micro_batches, int of_step, weights_read reads) {
  pipeline_schedule out =
      in_phases(name, {stages, micro_batches, 1, 1, [=](int r) { return stages - r - 1; }, false, of_step});
  out.reads = reads;
  return out;
}
}  // namespace detail

/// One forward, one backward without a break between steps, of `of_step` micro-batches each: stage s keeps as many
/// versions of its weights as micro-batches are under way.
inline pipeline_schedule pipedream(int stages, int micro_batches, int of_step = 1) {
  return detail::unbroken("pipedream", stages, micro_batches, of_step, weights_read::stashed);
}

/// The same with two versions, a step behind: `of_step` is at least the number of stages (bad_input).
inline pipeline_schedule pipedream_2bw(int stages, int micro_batches, int of_step) {
  if (of_step < stages)
    throw bad_input("schedule pipedream_2bw of " + std::to_string(stages) + " stages with " + std::to_string(of_step) +
                    " micro-batches in a batch: as many as stages are needed, or two versions are too few");
  return detail::unbroken("pipedream_2bw", stages, micro_batches, of_step, weights_read::delayed);
}

/// As PipeDream's, with nothing kept of older weights: backward reads what is there (PipeMare, arXiv 1910.05124).
inline pipeline_schedule pipemare(int stages, int micro_batches, int of_step = 1) {
  return detail::unbroken("pipemare", stages, micro_batches, of_step, weights_read::newest);
}

}  // namespace cfp
