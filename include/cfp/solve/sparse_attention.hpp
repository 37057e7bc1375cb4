// Attention of a sparse block mask split over ranks by heads (Ulysses) and by sequence (ring): how uneven its work is,
// how to place heads and blocks so that it is even, and how many ranks to take for either. (db-SP's questions.)
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// What each block of scores takes, 0 where it is masked: of `heads` x `blocks` queries x `blocks` keys.
struct block_loads {
  int heads = 1, blocks = 1;
  std::vector<double> load{};

  double& operator()(int head, int query, int key) { return load[at(head, query, key)]; }
  double operator()(int head, int query, int key) const { return load[at(head, query, key)]; }
  double total() const { return std::accumulate(load.begin(), load.end(), 0.0); }
  /// The part of all blocks that is not masked, by what they take; the largest counts as whole.
  double density() const {
    const double most = load.empty() ? 0 : *std::max_element(load.begin(), load.end());
    return most > 0 ? total() / (most * static_cast<double>(load.size())) : 0;
  }
  static block_loads uniform(int heads, int blocks) {
    return {heads, blocks, std::vector<double>(static_cast<std::size_t>(heads * blocks * blocks), 1.0)};
  }

 private:
  std::size_t at(int h, int q, int k) const { return static_cast<std::size_t>((h * blocks + q) * blocks + k); }
};

/// Which ranks of `by_heads` x `by_sequence` have what: heads go to a group of ranks; in each group blocks of queries
/// go to its ranks, and blocks of keys begin on them, from which they go around.
struct attention_split {
  int by_heads = 1, by_sequence = 1;
  std::vector<int> group{};                            ///< of each head
  std::vector<std::vector<int>> query_at{}, key_at{};  ///< of each group: of each block its rank there
};

namespace detail {

inline void check_split(const block_loads& w, int by_heads, int by_sequence) {
  if (w.load.size() != static_cast<std::size_t>(w.heads * w.blocks * w.blocks))
    throw bad_input("a mask of " + std::to_string(w.heads) + " heads and " + std::to_string(w.blocks) +
                    " blocks has as many loads as heads times blocks squared, not " + std::to_string(w.load.size()));
  if (by_heads < 1 || by_sequence < 1 || w.heads % by_heads != 0 || w.blocks % by_sequence != 0)
    throw bad_input("ranks: " + std::to_string(by_heads) + " by heads and " + std::to_string(by_sequence) +
                    " by sequence must divide " + std::to_string(w.heads) + " heads and " + std::to_string(w.blocks) +
                    " blocks");
}

// The heaviest first, each to the lightest that has room: as many each. `bonus(item, to)`: what makes a place lighter
// for an item.
template <class Bonus>
std::vector<int> placed_evenly(const std::vector<double>& weight, int places, const Bonus& bonus) {
  std::vector<std::size_t> order(weight.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return weight[a] > weight[b]; });
  const std::size_t room = weight.size() / static_cast<std::size_t>(places);
  std::vector<double> load(static_cast<std::size_t>(places), 0);
  std::vector<std::size_t> has(static_cast<std::size_t>(places), 0);
  std::vector<int> out(weight.size(), 0);
  for (const std::size_t i : order) {
    int best = -1;
    double least = std::numeric_limits<double>::infinity();
    for (int p = 0; p < places; ++p)
      if (const double here = load[static_cast<std::size_t>(p)] - bonus(i, p);
          has[static_cast<std::size_t>(p)] < room && here < least)
        least = here, best = p;
    out[i] = best;
    load[static_cast<std::size_t>(best)] += weight[i], ++has[static_cast<std::size_t>(best)];
  }
  return out;
}

}  // namespace detail

/// As they lie: neighbours together.
inline attention_split split_in_order(const block_loads& w, int by_heads, int by_sequence) {
  detail::check_split(w, by_heads, by_sequence);
  attention_split out{by_heads, by_sequence, {}, {}, {}};
  for (int h = 0; h < w.heads; ++h) out.group.push_back(h * by_heads / w.heads);
  std::vector<int> at;
  for (int b = 0; b < w.blocks; ++b) at.push_back(b * by_sequence / w.blocks);
  out.query_at.assign(static_cast<std::size_t>(by_heads), at), out.key_at = out.query_at;
  return out;
}

/// rho: what the rank that has most to do takes in each step around the ring, of the group that takes longest, over
/// what each would take if all had the same. 1: even.
inline double imbalance_of(const block_loads& w, const attention_split& s) {
  const double even = w.total() / (s.by_heads * s.by_sequence);
  double worst = 0;
  for (int g = 0; g < s.by_heads; ++g) {
    const auto n = static_cast<std::size_t>(s.by_sequence);
    std::vector<double> of(n * n, 0);  // by the rank of the queries, and that where the keys began
    for (int h = 0; h < w.heads; ++h)
      for (int q = 0; s.group[static_cast<std::size_t>(h)] == g && q < w.blocks; ++q)
        for (int k = 0; k < w.blocks; ++k) {
          const auto &queries = s.query_at[static_cast<std::size_t>(g)], &keys = s.key_at[static_cast<std::size_t>(g)];
          of[static_cast<std::size_t>(queries[static_cast<std::size_t>(q)]) * n +
             static_cast<std::size_t>(keys[static_cast<std::size_t>(k)])] += w(h, q, k);
        }
    double all = 0;
    for (std::size_t step = 0; step < n; ++step) {
      double most = 0;
      for (std::size_t r = 0; r < n; ++r) most = std::max(most, of[r * n + (r + step) % n]);
      all += most;
    }
    worst = std::max(worst, all);
  }
  return even > 0 ? worst / even : 1;
}

/// Heads to groups, then in each queries and keys to ranks, the heaviest first; or as they lie, where that is no worse.
/// `stays`: by which part of its own load a block is lighter where it lies already, so that less is moved.
inline attention_split balanced_split(const block_loads& w, int by_heads, int by_sequence, double stays = 0.1) {
  const attention_split plain = split_in_order(w, by_heads, by_sequence);
  attention_split out = plain;
  std::vector<double> of_head(static_cast<std::size_t>(w.heads), 0);
  for (int h = 0; h < w.heads; ++h)
    for (int q = 0; q < w.blocks; ++q)
      for (int k = 0; k < w.blocks; ++k) of_head[static_cast<std::size_t>(h)] += w(h, q, k);
  out.group = detail::placed_evenly(of_head, by_heads, [](std::size_t, int) { return 0.0; });
  for (int g = 0; g < by_heads; ++g) {
    std::vector<double> of_query(static_cast<std::size_t>(w.blocks), 0), of_key = of_query;
    for (int h = 0; h < w.heads; ++h)
      for (int q = 0; out.group[static_cast<std::size_t>(h)] == g && q < w.blocks; ++q)
        for (int k = 0; k < w.blocks; ++k)
          of_query[static_cast<std::size_t>(q)] += w(h, q, k), of_key[static_cast<std::size_t>(k)] += w(h, q, k);
    const auto here = static_cast<std::size_t>(g);
    for (const auto& [weight, at] :
         {std::pair(&of_query, &out.query_at[here]), std::pair(&of_key, &out.key_at[here])}) {
      const std::vector<int> lies = *at;
      *at = detail::placed_evenly(*weight, by_sequence, [&, of = weight](std::size_t b, int rank) {
        return lies[b] == rank ? stays * (*of)[b] : 0;
      });
    }
  }
  attention_split heads = plain;  // heads alone, and sequences alone, may be better than both
  heads.group = out.group;
  attention_split best = plain;
  for (const attention_split* const s : {&heads, &out})
    if (imbalance_of(w, *s) < imbalance_of(w, best)) best = *s;
  return best;
}

/// What attention on `by_heads` x `by_sequence` ranks takes, milliseconds.
struct attention_times {
  std::vector<std::pair<int, double>> all_to_all{};  ///< by ranks that heads are split over; of 1: none
  std::vector<std::pair<int, double>> send{};        ///< of keys and values to the next in a ring of so many ranks
  double dense = 0, launch = 0;                      ///< of all blocks of a group's heads on one rank, and of a step

  static double of(const std::vector<std::pair<int, double>>& table, int ranks, const char* what) {
    if (ranks == 1) return 0;
    for (const auto& [n, ms] : table)
      if (n == ranks) return ms;
    throw bad_input(std::string("nothing says what ") + what + " takes on " + std::to_string(ranks) + " ranks");
  }
  /// A step of the ring waits for what comes next, but the last.
  double ms(int by_heads, int by_sequence, double density, double rho) const {
    const double step = dense * density / by_sequence + launch;
    const double sent = of(send, by_sequence, "a send");
    return of(all_to_all, by_heads, "an all-to-all") + rho * ((by_sequence - 1) * std::max(step, sent) + step);
  }
};

struct attention_choice {
  int by_heads = 1, by_sequence = 1;
  double ms = std::numeric_limits<double>::infinity();
};

/// Of all ways to split so many ranks the quickest; `rho(by_heads, by_sequence)`: how uneven each is, infinity for
/// none.
template <class Rho>
attention_choice best_attention_split(const attention_times& t, int ranks, double density, const Rho& rho) {
  attention_choice best;
  for (int by_heads = 1; by_heads <= ranks; ++by_heads) {
    if (ranks % by_heads != 0) continue;
    const double ms = t.ms(by_heads, ranks / by_heads, density, rho(by_heads, ranks / by_heads));
    if (ms < best.ms) best = {by_heads, ranks / by_heads, ms};
  }
  return best;
}

}  // namespace cfp
