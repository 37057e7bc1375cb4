// Alpa's cut into stages (arXiv 2201.12023): for each longest stage that may be, the least sum of stages none of which
// is longer. By a formula that takes all stages to be as long as the longest.
#pragma once

#include <cfp/solve/stages.hpp>

#include <set>

namespace cfp::inline v0_1 {

/// Alpa's time of a plan: the sum of its stages, with what they send, and M - 1 times the longest.
inline double alpa_time(const stage_problem& p, const std::vector<int>& ends, const std::vector<stage_option>& chosen) {
  double sum = 0, longest = 0;
  for (std::size_t s = 0; s < chosen.size(); ++s) {
    double t = chosen[s].forward + chosen[s].backward;
    if (p.border && s + 1 < chosen.size()) t += p.border(ends[s]).forward + p.border(ends[s]).backward;
    sum += t;
    longest = std::max(longest, t);
  }
  return sum + (p.micro_batches - 1) * longest;
}

namespace detail {

class alpa_stage_search {
 public:
  alpa_stage_search(const stage_problem& p, staged_schedule kind) : p_(p), kind_(kind) {}

  stage_solution run() {
    for (int first = 0; first < p_.layers; ++first)
      for (int end = first + 1; end <= p_.layers; ++end)
        for (const stage_option& o : p_.options(first, end)) lengths_.insert(length(o, end));
    stage_solution out;
    double best = std::numeric_limits<double>::infinity();
    for (const double longest : lengths_) {
      if ((p_.micro_batches - 1) * longest >= best) break;
      const stage_solution s = within(longest);
      if (!s.feasible()) continue;
      const double ms = alpa_time(p_, s.ends, s.option);
      if (ms < best) best = ms, out = s;
    }
    if (out.feasible()) out.ms = time_of(p_, kind_, out.ends, out.option), out.simulated = 1;
    return out;
  }

 private:
  struct state {
    double sum = std::numeric_limits<double>::infinity();
    int end = 0;
    stage_option option{};
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  double length(const stage_option& o, int end) const {
    const border_cost send = p_.border && end < p_.layers ? p_.border(end) : border_cost{};
    return o.forward + o.backward + send.forward + send.backward;
  }

  // The least sum of stages that take at most `longest`.
  stage_solution within(double longest) const {
    std::vector<std::vector<state>> best(at(p_.stages) + 1, std::vector<state>(at(p_.layers) + 1));
    best[0][at(p_.layers)].sum = 0;
    for (int left = 1; left <= p_.stages; ++left)
      for (int first = 0; first < p_.layers; ++first)
        for (int end = left > 1 ? first + 1 : p_.layers; end + left - 1 <= p_.layers; ++end)
          for (const stage_option& o : p_.options(first, end)) {
            const double t = length(o, end), sum = t + best[at(left - 1)][at(end)].sum;
            const bool fits = o.always + o.kept * kept_with(kind_, left, p_.micro_batches) <= p_.memory;
            if (fits && t <= longest && sum < best[at(left)][at(first)].sum) best[at(left)][at(first)] = {sum, end, o};
          }
    stage_solution out;
    if (!(best[at(p_.stages)][0].sum < std::numeric_limits<double>::infinity())) return out;
    for (int left = p_.stages, first = 0; left > 0; --left) {
      const state& s = best[at(left)][at(first)];
      out.ends.push_back(s.end), out.option.push_back(s.option);
      first = s.end;
    }
    return out;
  }

  const stage_problem& p_;
  staged_schedule kind_;
  std::set<double> lengths_;
};

}  // namespace detail

/// The plan that Alpa's search finds, and the time it takes by the schedule.
inline stage_solution alpa_stages(const stage_problem& p, staged_schedule kind) {
  return detail::alpa_stage_search(p, kind).run();
}

}  // namespace cfp
