// The profiler: every choice and every conversion is run on all ranks and measured, once per thing that differs.
#pragma once

#include <cfp/model/name_hash.hpp>
#include <cfp/profile/cost/bounds.hpp>
#include <cfp/profile/cost/lazy_builder.hpp>
#include <cfp/profile/measure/measure.hpp>

#include <algorithm>
#include <cstdio>

namespace cfp::inline v0_1 {

/// Measures what decisions cost, remembering everything in a table.
class profiler : public lazy_builder {
 public:
  using progress = std::function<void(int done, int all, const std::string& what)>;

  /// The backend, whose mesh is planned for, and the table must outlive this, as must the graph and its decisions.
  profiler(const graph& g, const decision_graph& d, backend& on, profile_table& table)
      : lazy_builder(g, on.mesh(), d, on.lowered_for()), random_(with_random_inputs(g)), on_(on), table_(table),
        bounds_(table), oversubscribed_(is_oversubscribed(on)) {}
  profiler(const profiler&) = delete;

  int measured = 0;                       ///< programs run, not found in the table
  std::set<std::string> wanted;           ///< table entries there would be if all were measured
  progress tell;                          ///< called before each program that is run
  const profile_table* replay = nullptr;  ///< where measurements come from instead of being run: for tests

  /// From here on only what is asked for is measured. What is not has a lower bound and a guess (`program_bounds`).
  void be_lazy(double tolerance = 0) {
    asking_ = false;
    bounds_.near_best = tolerance > 0;
  }
  /// How much of the table was needed.
  struct knowledge {
    int of = 0, measured = 0;
    int below_bound =
        0;          ///< figures that are less than what bounded them before they were run: no certificate covers that
    double by = 0;  ///< milliseconds, the most of any
  };
  knowledge known() const {
    knowledge out;
    for (const job& j : measured_) {
      const double over = j.bound - table_.entries.at(j.name).median;
      out.below_bound += over > 0;
      out.by = std::max(out.by, over);
    }
    out.measured = found_in_table();
    out.of = static_cast<int>(wanted.size());
    return out;
  }

  /// What the first rank says: of what a clock decides, that all processes do the same.
  bool agreed(bool said) const {
    on_.run([&](rank& r) {
      bool mine = said;
      r.agree(std::as_writable_bytes(std::span(&mine, 1)));
      if (r.leads()) said = mine;
    });
    return said;
  }

  /// Seconds that measuring everything else would take, as far as what was measured tells.
  double seconds_left() const {
    const int found = found_in_table(), left = static_cast<int>(wanted.size()) - found;
    return found > 0 ? seconds_ / found * left : std::numeric_limits<double>::infinity();
  }

  /// The cost graph: milliseconds per step. What is not in the table is measured, and what takes longer than its
  /// instructions did elsewhere once or twice more, so that a moment's disturbance is not the property of one choice.
  cost_graph build() {
    asking_ = true;
    int all = 0, done = 0;
    std::set<std::string> seen;
    for (const decision& n : d_.nodes)
      if (!n.operations.empty() && seen.insert(choices_of(n)).second) all += static_cast<int>(n.choices());
    const auto first = [&](const std::string& what) {
      if (tell) tell(done++, all, what);
    };
    unique_.clear();
    collect(first);
    while (measured_again()) {}
    unique_.clear();
    return costs();
  }
  /// Time of operations run together under a sharding, tensors from outside given as needed.
  /// Time known from earlier is taken, unless `again`: then it is measured once more, and the better figure kept.
  measurement whole(const std::vector<int>& operations, const sharding& plan, const std::string& label,
                    bool again = false) {
    program p = lower(g_, mesh_, plan, operations, real_bytes_, true, {}, &conversions_);
    target_.complete(p, g_);
    const std::string k = key("whole " + label, operations, plan, true);
    const auto run = [&] { return run_program(p, {5, 15, 0.5, 0.01}); };
    const auto [at, fresh] = table_.entries.try_emplace(k);
    measured += fresh;
    if (fresh) at->second = run();
    else if (again) at->second = undisturbed(at->second, run());
    return at->second;
  }

 private:
  int found_in_table() const {
    return static_cast<int>(
        std::count_if(wanted.begin(), wanted.end(), [&](const std::string& k) { return table_.entries.count(k) > 0; }));
  }

  struct job {
    std::string name;
    program code;
    measure_options options;
    double bound = 0;  ///< before it was run
    int left = 2;      ///< how often it may be measured again; none of what was in the table
  };

  measurement run_program(const program& p, measure_options options) {
    if (oversubscribed_) options.least = options.most = 1;
    std::vector<double> instructions;
    const measurement m = measure(on_, p, random_, options, &instructions);
    if (bounds_.learn(p, random_, instructions)) bounds_moved_ = true;
    return m;
  }

  // The decision, or the kind of a conversion, that an entry of the table is of.
  static std::string of_what(const std::string& k) { return k.substr(0, k.find_first_of("[:")); }

  // Milliseconds, or a bound and a guess. `make` lowers the program.
  template <class Make>
  figures look_up(const std::string& k, const measure_options& options, const Make& make) {
    wanted.insert(k);
    if (const auto at = table_.entries.find(k); at != table_.entries.end()) {
      if (run_.insert(k).second) {  // by an earlier profiler
        measured_.push_back({k, make(), options, 0, 0});
        found_ = true;
      }
      return {at->second.median, at->second.median};
    }
    ++unknown_;
    program p = make();
    if (!asking_) {
      const expectation ms = bounds_.of(of_what(k), p, random_);
      return {ms.least, ms.expected};
    }
    if (tell) tell(measured, 0, k);
    ++measured;
    run_.insert(k);
    const double bound = bounds_.of(of_what(k), p, random_).least;
    const auto begin = std::chrono::steady_clock::now();
    const measurement m = table_.entries[k] = replay ? recorded(k, p) : run_program(p, options);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    measured_.push_back({k, std::move(p), options, bound});
    return {m.median, m.median};
  }

  measurement recorded(const std::string& k, const program& p) {
    std::vector<double> instructions;
    for (const instruction& i : p.code)
      instructions.push_back(i.nothing ? 0 : replay->instructions.at(kind_of(i, p, random_).label()).ms);
    if (bounds_.learn(p, random_, instructions)) bounds_moved_ = true;
    return replay->entries.at(k);
  }

  // What takes longer than its instructions did elsewhere, and may be measured again.
  std::vector<job*> compared() {
    std::vector<job*> again;
    std::vector<program_bounds::run> programs;
    for (job& j : measured_) {
      const program_bounds::run& r = programs.emplace_back(
          program_bounds::run{of_what(j.name), table_.entries[j.name].median, bounds_.sum(j.code, random_)});
      if (j.left > 0 && r.ms > bounds_.doubtful * r.sum) again.push_back(&j);
    }
    bounds_.compare(programs);
    bounds_moved_ = true;
    return again;
  }

  bool told_by_table() override {
    if (!std::exchange(found_, false)) return false;
    compared();
    return true;
  }

  bool measured_again() override {
    const std::vector<job*> again = compared();
    if (replay || oversubscribed_) return false;
    int done = 0;
    for (job* j : again) {
      if (tell) tell(done++, static_cast<int>(again.size()), j->name + " again");
      --j->left;
      measurement& m = table_.entries[j->name];
      m = undisturbed(m, run_program(j->code, j->options));
    }
    return !again.empty();
  }

  // Of two measurements of one thing: what else runs on a machine only ever adds time.
  static measurement undisturbed(const measurement& a, const measurement& b) { return a.median <= b.median ? a : b; }

  // Operations by what they compute, and the factor every axis takes in each.
  std::string key(const std::string& label, const std::vector<int>& operations, const sharding& plan,
                  bool forms) const {
    std::string choice = fingerprint(g_, operations);
    for (int o : operations) put(choice, plan.assigned[static_cast<std::size_t>(o)]);
    if (forms)
      for (int o : operations)
        for (int v : g_.at(o).results)
          for (const partition& p : plan.materialised[static_cast<std::size_t>(v)]) choice += describe(p, g_[v], mesh_);
    char hash[20];
    std::snprintf(hash, sizeof hash, "#%016llx", static_cast<unsigned long long>(name_hash(choice)));
    return label + " " + hash;
  }

  figures program_times(const decision& n, std::size_t c, const sharding& plan, const program& p) override {
    const std::string k = key(n.label + " [" + n.names[c] + "]", n.operations, plan, false);
    return look_up(k, {}, [&] { return p; });
  }

  figures step_times(int v, const partition& from, const conversion_step& s) override {
    const std::string k = kind_of(s, from, g_[v].shape, g_[v].width(real_bytes_), mesh_).label();
    return look_up(k, {5, 30, 0.02, 0.05}, [&] {
      program p = conversion_program(g_, mesh_, v, from, s, real_bytes_);
      plan_memory(p);
      return p;
    });
  }

  const graph random_;
  backend& on_;
  profile_table& table_;
  program_bounds bounds_;
  std::vector<job> measured_;  // or found in the table
  std::set<std::string> run_;  // those
  bool found_ = false;         // some of them in the table, and not compared yet
  double seconds_ = 0;         // measuring
  const bool oversubscribed_;  // these times are no timings, once is enough
};

}  // namespace cfp
