// TeraPipe's cut of a sequence into slices that go through a pipeline one behind the other (Li et al., ICML 2021, arXiv
// 2102.07988): the least sum t_i + (K - 1) max t_i, where a slice's time grows with the tokens before it.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/solve/other/least_by_longest.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct slice_problem {
  int tokens = 1;  ///< of the sequence
  int stages = 1;  ///< that slices go through
  /// Milliseconds that the slowest stage takes for a slice of `length` tokens, `context` tokens before it.
  std::function<double(int length, int context)> ms;
};

struct slice_plan {
  std::vector<int> lengths;                             ///< in tokens, from the first; none: none takes a finite time
  double ms = std::numeric_limits<double>::infinity();  ///< of the sequence through all stages
};

/// What slices take: their sum, and K - 1 times the longest.
inline double terapipe_time(const slice_problem& p, const std::vector<int>& lengths) {
  double sum = 0, longest = 0;
  int context = 0;
  for (const int length : lengths) {
    const double t = p.ms(length, context);
    sum += t, longest = std::max(longest, t), context += length;
  }
  return sum + (p.stages - 1) * longest;
}

namespace detail {

class slice_search {
 public:
  explicit slice_search(const slice_problem& p) : p_(p), last_(at(p.tokens + 1)) {}

  slice_plan run() {
    std::set<double> lengths;
    for (int context = 0; context < p_.tokens; ++context)
      for (int n = 1; context + n <= p_.tokens; ++n) lengths.insert(p_.ms(n, context));
    const double longest = best_longest(lengths, p_.stages - 1, [&](double most) { return within(most); });
    slice_plan out;
    if (!(within(longest) < std::numeric_limits<double>::infinity())) return out;
    for (int end = p_.tokens; end > 0; end -= last_[at(end)]) out.lengths.insert(out.lengths.begin(), last_[at(end)]);
    out.ms = terapipe_time(p_, out.lengths);
    return out;
  }

 private:
  static constexpr double rounding = 1e-12;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // The least sum of slices that take at most `longest`; the last of those up to each token is remembered, the shortest
  // where sums are equal, so that slices get no longer with more context.
  double within(double longest) {
    std::vector<double> sum(at(p_.tokens + 1), std::numeric_limits<double>::infinity());
    sum[0] = 0;
    for (int end = 1; end <= p_.tokens; ++end)
      for (int n = 1; n <= end; ++n) {
        const double t = p_.ms(n, end - n), all = sum[at(end - n)] + t;
        if (t <= longest && all < sum[at(end)] * (1 - rounding)) sum[at(end)] = all, last_[at(end)] = n;
      }
    return sum.back();
  }

  const slice_problem& p_;
  std::vector<int> last_;
};

}  // namespace detail

/// The slices of the least time. Throws bad_input for no tokens or stages.
inline slice_plan terapipe_slices(const slice_problem& p) {
  if (p.tokens < 1 || p.stages < 1)
    throw bad_input("a sequence has 1 token or more and goes through 1 stage or more, not " + std::to_string(p.tokens) +
                    " and " + std::to_string(p.stages));
  return detail::slice_search(p).run();
}

}  // namespace cfp
