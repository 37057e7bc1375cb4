// Sequences packed into micro-batches of so many tokens: as few as can be found, of about as much time each. (The
// second of two stages of Hydraulis, arXiv 2412.07894.)
#pragma once

#include <cfp/solve/sequence_dispatch.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// Of each micro-batch the numbers of its sequences.
using packed_sequences = std::vector<std::vector<int>>;

namespace detail {

inline long tokens_of(const std::vector<int>& some, const std::vector<long>& lengths) {
  return std::accumulate(some.begin(), some.end(), 0l,
                         [&](long sum, int s) { return sum + lengths[static_cast<std::size_t>(s)]; });
}

inline void check_packing(const std::vector<long>& lengths, long capacity) {
  for (const long l : lengths)
    if (l < 1 || l > capacity)
      throw bad_input("a sequence of " + std::to_string(l) + " tokens and micro-batches of " +
                      std::to_string(capacity) + ": sequences must have from 1 token to as many");
}

}  // namespace detail

/// As data loaders do: each sequence behind the last, in a new micro-batch where it does not fit.
inline packed_sequences packed_in_order(const std::vector<long>& lengths, long capacity) {
  detail::check_packing(lengths, capacity);
  packed_sequences out;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    if (out.empty() || detail::tokens_of(out.back(), lengths) + lengths[s] > capacity) out.emplace_back();
    out.back().push_back(static_cast<int>(s));
  }
  return out;
}

/// The longest first, each in the first micro-batch that it fits in: at most 11/9 of the fewest, and one.
inline packed_sequences packed_few(const std::vector<long>& lengths, long capacity) {
  detail::check_packing(lengths, capacity);
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  packed_sequences out;
  for (const std::size_t s : order) {
    auto to = std::find_if(out.begin(), out.end(), [&](const std::vector<int>& some) {
      return detail::tokens_of(some, lengths) + lengths[s] <= capacity;
    });
    if (to == out.end()) to = out.emplace(out.end());
    to->push_back(static_cast<int>(s));
  }
  return out;
}

/// In as many micro-batches as `packed_few`, the longest first, each where it ends first and fits; if that does not go
/// out, or is no better, as there. Times are those of `p`.
inline packed_sequences packed_evenly(const std::vector<long>& lengths, long capacity, const sequence_pipeline& p) {
  packed_sequences few = packed_few(lengths, capacity), out(few.size());
  std::vector<double> ms(few.size(), 0);
  std::vector<long> tokens(few.size(), 0);
  std::vector<std::size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  for (const std::size_t s : order) {
    std::size_t best = few.size();
    for (std::size_t m = 0; m < few.size(); ++m)
      if (tokens[m] + lengths[s] <= capacity && (best == few.size() || ms[m] < ms[best])) best = m;
    if (best == few.size()) return few;
    out[best].push_back(static_cast<int>(s));
    tokens[best] += lengths[s], ms[best] += p.ms(lengths[s]);
  }
  const auto longest = [&](const packed_sequences& of) {
    double most = 0;
    for (const std::vector<int>& some : of) {
      double sum = 0;
      for (const int s : some) sum += p.ms(lengths[static_cast<std::size_t>(s)]);
      most = std::max(most, sum);
    }
    return most;
  };
  return longest(out) <= longest(few) ? out : few;
}

}  // namespace cfp
