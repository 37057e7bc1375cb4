// Copies of a model in pools: see plan_in_copies.hpp.
#pragma once

#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/least_step.hpp>
#include <cfp/profile/machine/collective_time.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/plan_for_implementation.hpp>
#include <cfp/session/plan_in_copies.hpp>
#include <cfp/session/search_options.hpp>
#include <cfp/session/texts.hpp>
#include <cfp/solve/shares.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <ostream>
#include <utility>

namespace cfp::inline v0_1 {

namespace detail {

inline void check_copies(const machine_plan_options& o, const machine_pools& m) {
  if (m.pools.size() < 2) throw bad_input("copies of a model lie in two pools or more; give more machines");
  if (!o.mesh.empty()) throw bad_input("mesh " + o.mesh + ": each pool's copy chooses its own; leave it out");
  if (o.optimizers.size() > 1) throw bad_input("copies of a model are updated by one optimizer; name one");
  if (!o.table.empty() || o.measure_on.ms)
    throw bad_input("a table of operators is of one kind of device, pools have several; leave it out");
}

/// Bytes of all weights, and of these with what the optimizer keeps of them; each once.
inline std::pair<double, double> bytes_of_weights(const graph& g, number type) {
  double weights = 0, all = 0;
  for (const operation& o : g.operations) {
    if (o.op->body != op_body::update) continue;
    for (const int v : o.operands) {
      const double bytes = static_cast<double>(elements(g[v].shape) * g[v].width(bytes_of(type)) * o.times);
      if (g[v].role == value_role::weight) weights += bytes;
      if (g[v].role == value_role::weight || g[v].role == value_role::state) all += bytes;
    }
  }
  return {weights, all};
}

/// Whether devices of each pool have the memory for all weights and their state, cut into pieces.
inline bool may_fit(double bytes, const machine_pools& m, long limit) {
  return std::all_of(m.pools.begin(), m.pools.end(), [&](const machine& pool) {
    return bytes <= static_cast<double>(limit > 0 ? limit : pool.device.memory) * pool.devices();
  });
}

/// Seconds until each pool has the sum of what all have: all ranks of a pool share its links.
inline double summed_seconds(const machine_pools& m, double bytes) {
  machine joined;
  joined.device = m.pools.front().device;
  joined.levels = {m.between};
  joined.levels.front().joins = static_cast<int>(m.pools.size());
  mesh_shape pools;
  pools.axes.push({"pool", joined.levels.front().joins});
  return collective_seconds(joined, group_of(joined, pools, 0), collective_kind::all_reduce, bytes);
}

/// Steps in a millisecond that no plan of each pool alone does more of.
inline std::vector<double> most_speeds(const graph& trained, const target& on, const machine_pools& m) {
  const program alone = on_one_device(trained, on);
  std::vector<double> out;
  for (const machine& pool : m.pools) out.push_back(1 / least_step_ms(alone, trained, pool.device, pool.devices()));
  return out;
}

/// Whether nothing is computed again, or brought back, for lack of memory.
inline bool keeps_all(const plan& p) {
  return std::none_of(p.shards.assigned.begin(), p.shards.assigned.end(),
                      [](const assignment& a) { return a.recompute || a.on_host; });
}

class copies_search {
 public:
  copies_search(const forward_of_rows& model, long rows, const machine_pools& m, const machine_plan_options& o)
      : model_(model), rows_(rows), m_(m), o_(o), within_(o.within) {}

  std::optional<copies_plan> run() {
    for (const int n : by_passes(model_, rows_, o_.micro_batches > 1 ? o_.micro_batches : 0).counts)
      if (n >= static_cast<int>(m_.pools.size()) && !settled_) in(n);
    return std::move(best_);
  }

 private:
  void in(int micro_batches) {
    const graph forward = model_(rows_ / micro_batches);
    const graph trained = differentiate(refine(checked(forward)), checked(in_micro_batches(o_.how, micro_batches)));
    const auto [bytes, resting] = bytes_of_weights(trained, o_.type);
    const double between = 1e3 * summed_seconds(m_, bytes);
    if (!may_fit(resting, m_, o_.memory)) return;
    const double within = within_ - between;
    const std::vector<double> most = most_speeds(trained, search_options(o_).lowered_for, m_);
    if (1 / std::accumulate(most.begin(), most.end(), 0.0) >= within) return;
    std::map<std::pair<int, int>, machine_plan> plans;
    const auto time = [&](int pool, int pieces) {
      machine_plan_options there = o_;
      there.micro_batches = pieces;
      there.within = within;
      const machine_plan& p = plans[{pool, pieces}] = plan_for(forward, at(pool), there);
      return p.fits() ? p.meshes.front().fastest()->ms : std::numeric_limits<double>::infinity();
    };
    const work_shares found =
        best_shares(micro_batches, static_cast<int>(m_.pools.size()), time, speeds_.empty() ? most : speeds_);
    if (!found.feasible()) return;
    bool all_kept = true;
    for (std::size_t p = 0; p < m_.pools.size(); ++p) {
      const machine_plan& of = plans.at({static_cast<int>(p), found.of_each[p]});
      all_kept = all_kept && of.fits() && keeps_all(of.best);
    }
    speeds_.assign(found.of_each.begin(), found.of_each.end());
    if (found.time + between < within_) {
      within_ = found.time + between;
      best_ = copies_plan{m_.name(), rows_ / micro_batches, micro_batches, {}, between, within_, bytes};
      for (std::size_t p = 0; p < m_.pools.size(); ++p)
        best_->copies.push_back(std::move(plans.at({static_cast<int>(p), found.of_each[p]})));
    }
    settled_ = all_kept && found.fractional + between >= within_;  // more would only cut work into smaller pieces
  }
  const machine& at(int pool) const { return m_.pools[static_cast<std::size_t>(pool)]; }

  const forward_of_rows& model_;
  const long rows_;
  const machine_pools& m_;
  const machine_plan_options& o_;
  double within_;
  bool settled_ = false;
  std::vector<double> speeds_{};
  std::optional<copies_plan> best_{};
};

/// "plan.json" -> "plan-2.json"
inline std::string path_of_pool(const std::string& path, std::size_t n) {
  const std::filesystem::path whole(path);
  return (whole.parent_path() / (whole.stem().string() + "-" + std::to_string(n) + whole.extension().string()))
      .string();
}

}  // namespace detail

CFP_INLINE std::optional<copies_plan> plan_in_copies(const forward_of_rows& model, long rows, const machine_pools& m,
                                                     const machine_plan_options& o) {
  detail::check_copies(o, m);
  return detail::copies_search(model, rows, m, o).run();
}

CFP_INLINE void copies_plan::save_plan(const std::string& path) const {
  for (std::size_t n = 0; n < copies.size(); ++n) copies[n].save_plan(detail::path_of_pool(path, n + 1));
}

CFP_INLINE void copies_plan::save_header(const std::string& path) const {
  for (std::size_t n = 0; n < copies.size(); ++n) copies[n].save_header(detail::path_of_pool(path, n + 1));
}

CFP_INLINE std::string copies_plan::json() const {
  nlohmann::ordered_json out{{"machine", machine},
                             {"rows", rows},
                             {"micro_batches", micro_batches},
                             {"step_ms", ms},
                             {"gradients_ms", gradients_ms},
                             {"bytes_between", bytes_between},
                             {"copies", nlohmann::ordered_json::array()}};
  for (const machine_plan& p : copies) out["copies"].push_back(nlohmann::ordered_json::parse(p.json()));
  return out.dump(1);
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const copies_plan& p) {
  using detail::printed;
  out << "copies of the model on " << p.machine << ", a step of " << p.micro_batches << " micro-batches of " << p.rows
      << (p.rows == 1 ? " row" : " rows") << ", by " << p.copies.front().optimizer << '\n'
      << printed("a step takes %.1f ms, of which gradients between the pools %.1f (%s)\n\n", p.ms, p.gradients_ms,
                 detail::bytes_text(static_cast<long>(p.bytes_between)).c_str())
      << "micro-batches    alone ms   peak GiB   plan, on\n";
  for (const machine_plan& one : p.copies) {
    const machine_plan::priced& taken = *one.meshes.front().fastest();
    out << printed("%13d %11.1f %10.2f   %s %s, %d of %s\n", one.micro_batches, taken.ms,
                   static_cast<double>(taken.peak_bytes) / (1 << 30), one.meshes.front().mesh.c_str(),
                   taken.plan.c_str(), one.devices, one.machine.c_str());
  }
  return out;
}

}  // namespace cfp
