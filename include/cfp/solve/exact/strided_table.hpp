// Tables as elimination reads them, and the loop it spends its time in.
#pragma once

#include <cfp/solve/problem.hpp>

namespace cfp::inline v0_1::detail {

/// A row of numbers for each of several choices.
struct strided_table {
  const double* begin;  ///< of the row of choice 0
  std::size_t stride;   ///< from one choice's row to the next
};

/// Element by element, the least over all choices c: what[x] = min(what[x], fixed[c] + the tables' rows of c).
inline void lower_to(double* what, std::size_t width, const std::vector<double>& fixed,
                     const std::vector<strided_table>& tables, std::vector<double>& scratch) {
  for (std::size_t c = 0; c < fixed.size(); ++c) {
    const double own = fixed[c];
    if (own == infinite_time) continue;
    const double* a = tables.empty() ? nullptr : tables[0].begin + c * tables[0].stride;
    if (tables.empty()) {
      for (std::size_t x = 0; x < width; ++x) what[x] = std::min(what[x], own);
    } else if (tables.size() == 1) {
      for (std::size_t x = 0; x < width; ++x) what[x] = std::min(what[x], own + a[x]);
    } else if (tables.size() == 2) {
      const double* b = tables[1].begin + c * tables[1].stride;
      for (std::size_t x = 0; x < width; ++x) what[x] = std::min(what[x], own + a[x] + b[x]);
    } else {
      scratch.assign(width, own);
      for (const strided_table& table : tables) {
        const double* t = table.begin + c * table.stride;
        for (std::size_t x = 0; x < width; ++x) scratch[x] += t[x];
      }
      for (std::size_t x = 0; x < width; ++x) what[x] = std::min(what[x], scratch[x]);
    }
  }
}

}  // namespace cfp::detail
