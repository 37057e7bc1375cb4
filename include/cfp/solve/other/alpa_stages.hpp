// Alpa's cut into stages (Zheng et al., OSDI 2022, arXiv 2201.12023, section 5): for each longest stage that may be,
// the least sum of stages none of which is longer, F(s, k, d; t_max). By a formula that takes all stages to be as long
// as the longest.
#pragma once

#include <cfp/solve/other/least_by_longest.hpp>
#include <cfp/solve/other/stage_partition.hpp>

#include <set>

namespace cfp::inline v0_1 {

/// Alpa's time of a plan: the sum of its stages, with what they send, and M - 1 times the longest.
inline double alpa_time(const stage_problem& p, const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
  double sum = 0, longest = 0;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    const double t = chosen[s].forward + chosen[s].backward + detail::sent_behind(p, ends[s]);
    sum += t;
    longest = std::max(longest, t);
  }
  return sum + (p.micro_batches - 1) * longest;
}

/// A cluster of equal nodes, of which stages take submeshes: 1, 2, 4, ... devices of a node, or whole nodes. Submeshes
/// of these sizes that add up to a cluster always fit into it (theorem 1 of the paper) where a node has a power of two.
struct node_cluster {
  int nodes = 1, per_node = 1;

  int devices() const { return nodes * per_node; }
  bool is_submesh(int of) const {
    if (of < 1 || of > devices()) return false;
    return of < per_node ? (of & (of - 1)) == 0 : of % per_node == 0;
  }
};

namespace detail {

template <class Allowed>
stage_solution alpa_search(const stage_problem& p, staged_schedule kind, const stage_range& r, Allowed allowed) {
  check_range(p, r);
  const auto length = [&](const stage_option& o, int end) { return o.forward + o.backward + sent_behind(p, end); };
  std::set<double> lengths;
  walk_stages(p, kind, r, [&](const stage_step& s) {
    if (allowed(*s.option)) lengths.insert(length(*s.option, s.end));
  });
  const auto fill = [&](least_partition& table, double longest) {
    return table.fill(kind, [&](const stage_step& s, double behind) {
      const double t = length(*s.option, s.end);
      return t <= longest && allowed(*s.option) ? t + behind : std::numeric_limits<double>::infinity();
    });
  };
  const double longest = best_longest(lengths, p.micro_batches - 1, [&](double most) {
    least_partition table(p, r);
    return fill(table, most);
  });
  least_partition table(p, r);
  if (longest < std::numeric_limits<double>::infinity()) fill(table, longest);
  return table.plan(kind);
}

}  // namespace detail

/// The plan that Alpa's search finds, of as many stages as the problem says, and the time it takes by the schedule.
/// Throws bad_input for sizes that cannot be.
inline stage_solution alpa_stages(const stage_problem& p, staged_schedule kind) {
  return detail::alpa_search(p, kind, detail::said_stages(p), [](const stage_option&) { return true; });
}

/// The same, of any number of stages (`stages` of the problem is not read) whose options run on submeshes of a cluster;
/// they use all its devices. Options on other numbers of devices are passed over.
inline stage_solution alpa_stages(const stage_problem& p, staged_schedule kind, const node_cluster& on) {
  return detail::alpa_search(p, kind, detail::any_stages(p, on.devices()),
                             [&](const stage_option& o) { return on.is_submesh(o.devices); });
}

}  // namespace cfp
