// DAPPLE's planner (Fan et al., PPoPP 2021, arXiv 2007.01045): the plan of the least latency L = T_w + (M -
// 1)(F_Q + B_Q) + T_end, where Q, the pivot, is the stage that has the least idle time. Sends count as stages.
#pragma once

#include <cfp/solve/other/stage_partition.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// The latency of stages and sends, made from the last to the first.
//
// The last is the pivot at first. One before it becomes the pivot where (M - 1)(F + B) of its own is more than that of
// the pivot and F + B of all between them. Then: forward goes from the first to the pivot; the pivot takes its other M
// - 1 micro-batches; the last backward goes from the pivot to the first. A stage updates when its last backward is
// over, which is before that of the first is by the backward of those before it.
class dapple_latency {
 public:
  explicit dapple_latency(int micro_batches) : more_(micro_batches - 1) {}

  /// With another stage or send before.
  dapple_latency behind(double forward, double backward, double update) const {
    dapple_latency out = *this;
    const double once = forward + backward, takes = more_ * once;
    if (!any_ || takes > pivot_) out.any_ = true, out.pivot_ = takes, out.all_ = takes + once;
    else out.pivot_ += once, out.all_ += once;
    out.late_ = std::max(update, late_ - backward);
    return out;
  }
  /// With a stage before that ends before layer `end`, and what it sends.
  dapple_latency behind(const stage_problem& p, const stage_option& o, int end) const {
    const border_cost send = p.border && end < p.layers ? p.border(0, end) : border_cost{};
    const bool sends = send.forward > 0 || send.backward > 0;
    return (sends ? behind(send.forward, send.backward, 0) : *this).behind(o.forward, o.backward, o.update);
  }

  double ms() const { return all_ + late_; }
  /// Whether it is no worse, whatever comes before: where a stage becomes its pivot and not that of the other, the
  /// other takes as long already.
  bool is_no_worse(const dapple_latency& b) const { return all_ <= b.all_ && pivot_ <= b.pivot_ && late_ <= b.late_; }

 private:
  double more_;  // micro-batches after the first
  bool any_ = false;
  double all_ = 0;    // to the end of the last backward of the first
  double pivot_ = 0;  // (M - 1)(F + B) of the pivot, and F + B of those before it: what another must take to be it
  double late_ = -std::numeric_limits<double>::infinity();  // updates end so much after the last backward of the first
};

class dapple_search {
 public:
  dapple_search(const stage_problem& p, staged_schedule kind, const stage_range& r)
      : p_(p), kind_(kind), r_(r), known_(p.layers, r, {}) {}

  stage_solution run() {
    known_(0, p_.layers, 0).push_back(label{dapple_latency(p_.micro_batches), {}, 0, 0});
    walk_stages(p_, kind_, r_, [&](const stage_step& s) {
      const std::vector<label>& rest = known_.behind(s);
      for (std::size_t n = 0; n < rest.size(); ++n)
        add(known_.here(s), {rest[n].latency.behind(p_, *s.option, s.end), *s.option, s.end, n});
    });
    const label* best = nullptr;
    int stages = 0;
    for (int n = r_.fewest; n <= r_.most; ++n)
      for (const label& l : known_(n, 0, r_.devices))
        if (best == nullptr || l.latency.ms() < best->latency.ms()) best = &l, stages = n;
    return follow(best, stages);
  }

 private:
  struct label {
    dapple_latency latency;
    stage_option option{};
    int end = 0;
    std::size_t next = 0;  // the label there
  };

  static void add(std::vector<label>& to, const label& l) {
    for (const label& other : to)
      if (other.latency.is_no_worse(l.latency)) return;
    std::erase_if(to, [&](const label& other) { return l.latency.is_no_worse(other.latency); });
    to.push_back(l);
  }
  stage_solution follow(const label* l, int left) {
    stage_solution out;
    for (int devices = r_.devices; l != nullptr && left > 0; --left) {
      out.ends.push_back(l->end), out.option.push_back(l->option);
      devices -= r_.devices == 0 ? 0 : l->option.devices;
      l = &known_(left - 1, l->end, devices)[l->next];
    }
    if (out.feasible()) out.ms = time_of(p_, kind_, out.ends, out.option), out.simulated = 1;
    return out;
  }

  const stage_problem& p_;
  const staged_schedule kind_;
  const stage_range r_;
  stage_table<std::vector<label>> known_;
};

}  // namespace detail

/// DAPPLE's time of a plan, milliseconds of a step; `update` of an option is the sum of its gradients over replicas.
inline double dapple_time(const stage_problem& p, const std::vector<int>& ends,
                          const std::vector<stage_option>& chosen) {
  detail::dapple_latency all(p.micro_batches);
  for (std::size_t s = chosen.size(); s-- > 0;) all = all.behind(p, chosen[s], ends[s]);
  return all.ms();
}

/// The plan of the least latency by DAPPLE's formula, of as many stages as the problem says, and the time it takes by
/// the schedule. The paper's own search tries less. Throws bad_input for sizes that cannot be.
inline stage_solution dapple_stages(const stage_problem& p, staged_schedule kind) {
  detail::check_range(p, detail::said_stages(p));
  return detail::dapple_search(p, kind, detail::said_stages(p)).run();
}

/// The same, of any number of stages (`stages` of the problem is not read) whose options use all of `devices` devices.
inline stage_solution dapple_stages(const stage_problem& p, staged_schedule kind, int devices) {
  detail::check_range(p, detail::any_stages(p, devices));
  return detail::dapple_search(p, kind, detail::any_stages(p, devices)).run();
}

}  // namespace cfp
