// The profiler: every choice and every conversion is run on all ranks and measured, once per thing that differs.
#pragma once

#include <cfp/profile/cost_builder.hpp>
#include <cfp/profile/measure.hpp>
#include <cfp/profile/work.hpp>

namespace cfp::inline v0_1 {

/// Measures what decisions cost, remembering everything in a table.
class profiler : public cost_builder {
 public:
  using progress = std::function<void(int done, int all, const std::string& what)>;

  /// Numbers are stored as T. Kernels, pool and table must outlive this.
  template <class T>
  profiler(const graph& g, const mesh_shape& mesh, const decision_graph& d, const host::kernels<T>& k, rank_pool& pool, profile_table& table)
      : cost_builder(g, mesh, d, sizeof(T)), random_(with_random_inputs(g)),
        measure_([this, &k, &pool](const program& p, const measure_options& options) { return cfp::measure(pool, p, random_, k, options); }), table_(table) {}
  profiler(const profiler&) = delete;

  int measured = 0;                        ///< programs run, not found in the table
  std::set<std::string> wanted;            ///< table entries there would be if all were measured
  progress tell;                           ///< called before each program that is run
  const profile_table* replay = nullptr;   ///< where measurements come from instead of being run: for tests

  /// From here on only what is asked for is measured. What is not has a lower bound: its arithmetic at the highest rate seen in
  /// any program, or its traffic at the highest bandwidth seen in any program (a conversion: of its kind), whichever takes
  /// longer, times `margin`.
  void be_lazy() { asking_ = false; }
  /// How much of the table was needed.
  struct knowledge {
    int of = 0, measured = 0, below_bound = 0;
  };
  knowledge known() const {
    knowledge out;
    for (const std::string& k : wanted) out.measured += table_.entries.count(k) > 0;
    out.of = static_cast<int>(wanted.size());
    out.below_bound = static_cast<int>(below_bound.size());
    return out;
  }
  static constexpr double margin = 0.7;
  std::vector<std::string> below_bound;    ///< entries that turned out faster than their bound said: what the certificate does not cover

  /// The cost graph: milliseconds per step. What is not in the table is measured in two passes over everything, so
  /// that a moment's disturbance is not the property of one choice.
  cost_graph build() {
    int all = 0, done = 0;
    std::set<std::string> seen;
    for (const decision& n : d_.nodes)
      if (!n.operations.empty() && seen.insert(choices_of(n)).second) all += static_cast<int>(n.choices());
    const auto first = [&](const std::string& what) {
      if (tell) tell(done++, 2 * all, what);
    };
    collect(first);
    const std::vector<job> again = std::move(fresh_);
    fresh_.clear();
    double at = 0;
    for (const job& j : again) {
      if (tell) tell(all + static_cast<int>(at++ / static_cast<double>(again.size()) * all), 2 * all, j.name + " again");
      measurement& m = table_.entries[j.name];
      m = undisturbed(m, j.run());
    }
    unique_.clear();
    return collect({});
  }
  /// Time of operations run together under a sharding, tensors from outside given as needed.
  /// Time known from earlier is taken, unless `again`: then it is measured once more, and the better figure kept.
  measurement whole(const std::vector<int>& operations, const sharding& plan, const std::string& label, bool again = false) {
    program p = lower(g_, mesh_, plan, operations, real_bytes_, true);
    plan_memory(p);
    const std::string k = key("whole " + label, operations, plan, true);
    const auto run = [this, p] { return measure_(p, {5, 15, 0.5, 0.01}); };
    const auto [at, fresh] = table_.entries.try_emplace(k);
    measured += fresh;
    if (fresh) at->second = run();
    else if (again) at->second = undisturbed(at->second, run());
    return at->second;
  }

 private:
  struct job {
    std::string name;
    std::function<measurement()> run;
  };

  measurement look_up(const std::string& k, const std::string& kind, const work_done& work, const std::function<measurement()>& measure_it) {
    wanted.insert(k);
    const auto at = table_.entries.find(k);
    if (at != table_.entries.end()) {
      learn(kind, work, at->second);
      return at->second;
    }
    ++unknown_;
    const double least = bound(kind, work);
    if (!asking_) return {least, 0, 0};
    if (tell) tell(measured, 0, k);
    ++measured;
    fresh_.push_back({k, measure_it});
    const measurement m = table_.entries[k] = replay ? replay->entries.at(k) : measure_it();
    if (m.median < least) below_bound.push_back(k);
    learn(kind, work, m);
    return m;
  }

  // Work per millisecond, the most seen.
  void learn(const std::string& kind, const work_done& work, const measurement& m) {
    if (!(m.median > 0)) return;
    work_done& best = rates_[kind];
    const auto raise = [this](double& most, double rate) {
      if (rate > most) most = rate, bounds_moved_ = true;
    };
    raise(best.flops, work.flops / m.median);
    raise(best.traffic, work.traffic / m.median);
  }
  double bound(const std::string& kind, const work_done& work) const {
    const auto at = rates_.find(kind);
    if (at == rates_.end()) return 0;
    const auto time = [](double amount, double rate) { return amount > 0 && rate > 0 ? amount / rate : 0; };
    return margin * std::max(time(work.flops, at->second.flops), time(work.traffic, at->second.traffic));
  }

  bool measured_again() override {
    const std::vector<job> again = std::move(fresh_);
    fresh_.clear();
    if (replay) return false;
    for (const job& j : again) {
      if (tell) tell(measured, 0, j.name + " again");
      measurement& m = table_.entries[j.name];
      m = undisturbed(m, j.run());
    }
    return !again.empty();
  }

  // Of two measurements of one thing: what else runs on a machine only ever adds time.
  static measurement undisturbed(const measurement& a, const measurement& b) { return a.median <= b.median ? a : b; }

  // Operations by what they compute, and the factor every axis takes in each.
  std::string key(const std::string& label, const std::vector<int>& operations, const sharding& plan, bool forms) const {
    std::string choice = fingerprint(g_, operations);
    for (int o : operations) put(choice, plan.assigned[static_cast<std::size_t>(o)]);
    if (forms)
      for (int o : operations)
        for (int v : g_.at(o).results)
          for (const partition& p : plan.materialised[static_cast<std::size_t>(v)]) choice += describe(p, g_[v], mesh_);
    char hash[20];
    std::snprintf(hash, sizeof hash, "#%016llx", static_cast<unsigned long long>(host::name_hash(choice)));
    return label + " " + hash;
  }

  double program_time(const decision& n, std::size_t c, const sharding& plan, const program& p) override {
    const std::string k = key(n.label + " [" + n.names[c] + "]", n.operations, plan, false);
    return look_up(k, "programs", work_of(p, g_), [this, p] { return measure_(p, {}); }).median;
  }

  double step_time(int v, const partition& from, const conversion_step& s) override {
    const partition to = after(from, s);
    const extents a = local_shape(from, g_[v].shape, mesh_), b = local_shape(to, g_[v].shape, mesh_);
    const auto around = [](const extents& shape, int dim) {
      const host::around w = host::view_around(shape, dim);
      return std::to_string(w.outer) + "x" + std::to_string(w.extent) + "x" + std::to_string(w.inner);
    };
    std::string k = std::string(step_names[s.kind]) + " over " + std::string(mesh_.axes[s.axis].label.view()) + ": ";
    using step = conversion_step;
    if (s.kind == step::all_reduce || s.kind == step::mask) k += std::to_string(elements(a));
    else if (s.kind == step::all_gather || s.kind == step::pad) k += around(b, s.dim);
    else if (s.kind == step::all_to_all) k += around(a, s.to) + " to " + around(b, s.dim);
    else k += around(a, s.dim);
    if (const long width = g_[v].width(real_bytes_); width != 4) k += " of " + std::to_string(width) + " bytes";
    const double traffic = static_cast<double>((elements(a) + elements(b)) * g_[v].width(real_bytes_));
    return look_up(k, std::string(step_names[s.kind]), {0, traffic, 0}, [this, v, from, s] { return measure_step(v, from, s); }).median;
  }

  measurement measure_step(int v, const partition& from, const conversion_step& s) {
    program p;
    p.mesh = mesh_;
    p.real_bytes = real_bytes_;
    const auto allocate = [&](const partition& held, long bytes, bool persistent) {
      buffer b;
      b.value = v;
      b.held = held;
      b.type = stored(g_[v].type, real_bytes_);
      b.local = local_shape(held, g_[v].shape, mesh_);
      b.bytes = bytes > 0 ? bytes : elements(b.local) * g_[v].width(real_bytes_);
      b.root = static_cast<int>(p.buffers.size());
      b.persistent = persistent;
      p.buffers.push_back(b);
      return b.root;
    };
    instruction i;
    i.kind = instruction::reshard;
    i.step = s;
    i.in.push(allocate(from, 0, true));
    i.out.push(allocate(after(from, s), 0, false));
    // Scratch exactly as lowering gives it.
    const long larger = std::max(p[i.in[0]].bytes, p[i.out[0]].bytes);
    using step = conversion_step;
    if ((s.kind == step::all_gather || s.kind == step::reduce_scatter) && host::view_around(p[i.in[0]].local, s.dim).outer > 1)
      i.out.push(allocate(from, larger, false));
    if (s.kind == step::all_to_all)
      for (int k = 0; k < 2; ++k) i.out.push(allocate(from, p[i.in[0]].bytes, false));
    p.code.push_back(i);
    plan_memory(p);
    return measure_(p, {5, 30, 0.02, 0.05});
  }

  const graph random_;
  const std::function<measurement(const program&, const measure_options&)> measure_;
  profile_table& table_;
  std::vector<job> fresh_;  // measured since the last second pass
  std::map<std::string, work_done> rates_;
};

}  // namespace cfp
