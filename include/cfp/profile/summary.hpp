// Several times of one thing, summarised: the median, and how far the quartiles are apart.
#pragma once

#include <algorithm>
#include <vector>

namespace cfp::inline v0_1 {

/// One measured figure, milliseconds.
struct measurement {
  double median = 0;
  double spread = 0;  ///< half the distance between the quartiles
  int repeats = 0;
};

inline double median(std::vector<double> x) {
  if (x.empty()) return 0;
  std::sort(x.begin(), x.end());
  const std::size_t n = x.size();
  return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

inline measurement summarise(std::vector<double> ms) {
  if (ms.empty()) return {};
  std::sort(ms.begin(), ms.end());
  return {median(ms), (ms[ms.size() * 3 / 4] - ms[ms.size() / 4]) / 2, static_cast<int>(ms.size())};
}

}  // namespace cfp
