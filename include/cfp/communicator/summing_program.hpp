// All-reduces of the literature as programs of sends: who sends what to whom, step by step. What they take follows from
// them, and ranks run them.
//
// Ring and halving-doubling: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
// MPICH", 2005. The ring in data parallelism: Horovod (arXiv 1802.05799). Hierarchical: a ring inside, one across, one
// inside.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Elements [first, first + count) that one rank sends to another, which adds them to its own or takes them.
struct block_send {
  int from = 0, to = 0;
  long first = 0, count = 0;
  bool adds = false;
};

/// After its steps every rank has the sum of what all had. Sends of one step are at the same time; none reads what
/// another one of its step writes.
struct summing_program {
  int ranks = 1;
  long count = 0;
  std::vector<std::vector<block_send>> steps{};

  /// Elements that a rank sends.
  long sent_by(int rank) const {
    long out = 0;
    for (const std::vector<block_send>& step : steps)
      for (const block_send& s : step) out += s.from == rank ? s.count : 0;
    return out;
  }
  /// Each step takes a latency and what the rank that sends most of it sends; `per_element` as `latency`.
  double time(double latency, double per_element) const {
    double out = 0;
    for (const std::vector<block_send>& step : steps) {
      std::vector<long> sent(static_cast<std::size_t>(ranks));
      for (const block_send& s : step) sent[static_cast<std::size_t>(s.from)] += s.count;
      out += latency + per_element * static_cast<double>(*std::max_element(sent.begin(), sent.end()));
    }
    return out;
  }
};

namespace detail {

inline void check_summed(int ranks, long count) {
  if (ranks < 1 || count < 0)
    throw bad_input("a sum is of 1 rank or more and 0 elements or more, not of " + std::to_string(ranks) + " and " +
                    std::to_string(count));
}

/// One of the pieces, as even as they can be, that elements are cut into.
inline std::pair<long, long> piece_of(std::pair<long, long> all, int piece, int pieces) {
  const auto [first, count] = all;
  const long from = count * piece / pieces, to = count * (piece + 1) / pieces;
  return {first + from, to - from};
}

/// Adds steps of a ring along some ranks: each sends a piece to the next, all at once, one step less than there are
/// ranks. Scattered, rank i begins with its own piece and ends up with the sum of piece i + 1; gathered, it begins
/// there.
inline void add_ring(std::vector<std::vector<block_send>>& steps, std::size_t at, const std::vector<int>& along,
                     std::pair<long, long> all, bool adds) {
  const int n = static_cast<int>(along.size());
  for (int step = 0; step + 1 < n; ++step) {
    const std::size_t now = at + static_cast<std::size_t>(step);
    if (steps.size() <= now) steps.resize(now + 1);
    for (int i = 0; i < n; ++i) {
      const auto [first, count] = piece_of(all, (i - step + (adds ? 0 : 1) + n) % n, n);
      steps[now].push_back(
          {along[static_cast<std::size_t>(i)], along[static_cast<std::size_t>((i + 1) % n)], first, count, adds});
    }
  }
}

/// Adds all steps so far the other way round, the last one first: what was added to is handed back.
inline void add_way_back(std::vector<std::vector<block_send>>& steps) {
  for (std::size_t there = steps.size(); there-- > 0;) {
    std::vector<block_send> back = steps[there];
    for (block_send& s : back) std::swap(s.from, s.to), s.adds = false;
    steps.push_back(std::move(back));
  }
}

inline std::vector<int> every(int step, int from, int count) {
  std::vector<int> out;
  for (int i = 0; i < count; ++i) out.push_back(from + i * step);
  return out;
}

}  // namespace detail

/// 2 (p - 1) steps, 2 (p - 1) / p of the elements from each.
inline summing_program ring_sum(int ranks, long count) {
  detail::check_summed(ranks, count);
  summing_program out{ranks, count};
  const std::vector<int> all = detail::every(1, 0, ranks);
  detail::add_ring(out.steps, 0, all, {0, count}, true);
  detail::add_ring(out.steps, out.steps.size(), all, {0, count}, false);
  return out;
}

/// A binomial tree up to rank 0 and down again: 2 ceil(log2 p) steps of all elements.
inline summing_program tree_sum(int ranks, long count) {
  detail::check_summed(ranks, count);
  summing_program out{ranks, count};
  for (int apart = 1; apart < ranks; apart *= 2) {
    out.steps.emplace_back();
    for (int to = 0; to + apart < ranks; to += 2 * apart) out.steps.back().push_back({to + apart, to, 0, count, true});
  }
  detail::add_way_back(out.steps);
  return out;
}

/// Halves go to and fro between ranks ever nearer, then come back: 2 log2 p steps, 2 (p - 1) / p of the elements from
/// each. Throws bad_input unless ranks are a power of 2.
inline summing_program halving_doubling_sum(int ranks, long count) {
  detail::check_summed(ranks, count);
  if (!std::has_single_bit(static_cast<unsigned>(ranks)))
    throw bad_input("halving and doubling is of a power of 2 of ranks, not of " + std::to_string(ranks) +
                    ": take a ring, or a tree");
  summing_program out{ranks, count};
  std::vector<std::pair<long, long>> mine(static_cast<std::size_t>(ranks), {0, count});
  for (int apart = ranks / 2; apart > 0; apart /= 2) {
    out.steps.emplace_back();
    for (int r = 0; r < ranks; ++r) {
      const bool upper = (r & apart) != 0;
      const auto given = detail::piece_of(mine[static_cast<std::size_t>(r)], upper ? 0 : 1, 2);
      out.steps.back().push_back({r, r ^ apart, given.first, given.second, true});
    }
    for (int r = 0; r < ranks; ++r)
      mine[static_cast<std::size_t>(r)] = detail::piece_of(mine[static_cast<std::size_t>(r)], (r & apart) != 0, 2);
  }
  detail::add_way_back(out.steps);
  return out;
}

/// Rings inside groups of `inside` neighbours scatter the sum, rings across groups sum up each piece, rings inside
/// gather them. Throws bad_input unless groups are whole.
inline summing_program hierarchical_sum(int ranks, int inside, long count) {
  detail::check_summed(ranks, count);
  if (inside < 1 || ranks % inside != 0)
    throw bad_input("groups of " + std::to_string(inside) + " do not divide " + std::to_string(ranks) + " ranks");
  summing_program out{ranks, count};
  const int groups = ranks / inside;
  const auto rings_inside = [&](bool adds) {
    const std::size_t at = out.steps.size();
    for (int g = 0; g < groups; ++g)
      detail::add_ring(out.steps, at, detail::every(1, g * inside, inside), {0, count}, adds);
  };
  rings_inside(true);
  const std::size_t at = out.steps.size();
  for (const bool adds : {true, false})
    for (int i = 0; i < inside; ++i)  // who has the sum of piece i + 1
      detail::add_ring(out.steps, at + (adds ? 0 : static_cast<std::size_t>(groups - 1)),
                       detail::every(inside, i, groups), detail::piece_of({0, count}, (i + 1) % inside, inside), adds);
  rings_inside(false);
  return out;
}

/// Runs it on ranks of a mesh of one axis, of which this is one, each with `data` of its own (`rank_context_of`).
template <class T, class Context>
void run_sum(const summing_program& p, const Context& here, T* data) {
  for (const std::vector<block_send>& step : p.steps) {
    std::vector<std::pair<const block_send*, std::vector<T>>> taken;  // written once all of the step are sent
    for (const block_send& s : step) {
      const auto count = static_cast<std::size_t>(s.count);
      if (s.from == here.rank) here.pair(0, s.to, true).send(data + s.first, count);
      if (s.to != here.rank) continue;
      taken.emplace_back(&s, std::vector<T>(count));
      here.pair(0, s.from, false).receive(taken.back().second.data(), count);
    }
    for (const auto& [s, block] : taken)
      for (std::size_t i = 0; i < block.size(); ++i) {
        T& to = data[s->first + static_cast<long>(i)];
        to = s->adds ? static_cast<T>(to + block[i]) : block[i];
      }
  }
}

}  // namespace cfp
