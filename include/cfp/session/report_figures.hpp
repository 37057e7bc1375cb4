// Figures that all reports have.
#pragma once

#include <cfp/export/report/report_view.hpp>
#include <cfp/session/report_rows.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline void count_model(const graph& g, report_view& out) {
  out.operators = g.size();
  out.passes = g.passes;
  for (const value& v : g.values)
    if (v.role == value_role::weight && v.producer < 0) out.parameters += elements(v.shape);
}

inline void put_sent(const std::vector<collective_count>& sent, const report_rows& rows, report_view& out) {
  for (std::size_t n = 0; n < sent.size(); ++n) out.decisions[static_cast<std::size_t>(rows.row_of(n))].sent += sent[n];
}

// The found one first, then the fastest.
inline void sort_compared(std::vector<report_view::compared>& plans) {
  std::stable_sort(plans.begin(), plans.end(), [](const auto& a, const auto& b) {
    return std::tuple(!a.found, a.ms) < std::tuple(!b.found, b.ms);
  });
}

}  // namespace detail

}  // namespace cfp
