// From decisions to numbers: every choice and every conversion gets a measured time, and the whole a cost graph.
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/profile/measure.hpp>
#include <cfp/runtime/lower.hpp>
#include <cfp/solve/exact.hpp>

#include <functional>

namespace cfp::inline v0_1 {

/// Bytes a program keeps (weights, optimizer state, activations saved for backward) and bytes beyond them at its peak.
struct program_memory {
  long kept = 0, transient = 0;
};

/// Of a part lowered alone, what it is given counts as well: activations its backward operations read are kept in the
/// form it reads them, all else it is given is there while it runs.
inline program_memory memory_of(const program& p, const graph& g) {
  std::vector<bool> forward(p.buffers.size()), saved(p.buffers.size());
  for (const instruction& i : p.code) {
    const bool back = i.kind == instruction::compute && g.at(i.op).when != phase::forward;
    for (int b : i.in)
      if (back && (forward[static_cast<std::size_t>(p[b].root)] || p[b].persistent)) saved[static_cast<std::size_t>(p[b].root)] = true;
    if (!back && (i.kind == instruction::reshard ? g[p[i.in[0]].value].role == value_role::activation : true))
      for (int b : i.out) forward[static_cast<std::size_t>(p[b].root)] = true;
  }
  program_memory m;
  long kept_in_arena = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].root != static_cast<int>(b)) continue;
    const value_role role = g[p.buffers[b].value].role;
    if (p.buffers[b].persistent && (role == value_role::weight || role == value_role::state)) m.kept += p.buffers[b].bytes;
    else if (p.buffers[b].persistent) (saved[b] && role == value_role::activation ? m.kept : m.transient) += p.buffers[b].bytes;
    if (!p.buffers[b].persistent && saved[b]) kept_in_arena += p.buffers[b].bytes;
  }
  m.kept += kept_in_arena;
  m.transient += p.arena_bytes > kept_in_arena ? p.arena_bytes - kept_in_arena : 0;
  return m;
}

/// Measures what decisions cost, remembering everything in a table.
class profiler {
 public:
  using progress = std::function<void(int done, int all, const std::string& what)>;

  profiler(const graph& g, const mesh_shape& mesh, const decision_graph& d, const host::kernels<float>& k,
           rank_pool& pool, profile_table& table)
      : g_(g), random_(with_random_inputs(g)), mesh_(mesh), d_(d), kernels_(k), pool_(pool), table_(table) {}

  int measured = 0;        ///< programs run, not found in the table
  int wanted = 0;          ///< distinct table entries used

  /// The cost graph: milliseconds per step. What is not in the table is measured in two passes over everything, so
  /// that a moment's disturbance is not the property of one choice.
  cost_graph build(const progress& tell) {
    int all = 0, done = 0;
    std::set<std::string> seen;
    for (const decision& n : d_.nodes)
      if (!n.operations.empty() && seen.insert(choices_of(n)).second) all += static_cast<int>(n.choices());
    const auto first = [&](const std::string& what) {
      if (tell) tell(done++, 2 * all, what);
    };
    collect(first);
    const std::vector<job> again = std::move(fresh_);
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
    program p = lower(g_, mesh_, plan, operations, sizeof(float), true);
    plan_memory(p);
    const std::string k = key("whole " + label, operations, plan, true);
    const auto run = [this, p] { return measure(pool_, p, random_, kernels_, {5, 15, 0.5, 0.01}); };
    if (const auto at = table_.entries.find(k); again && at != table_.entries.end()) at->second = undisturbed(at->second, run());
    return look_up(k, run);
  }

  /// Milliseconds of a conversion.
  double conversion_time(int v, const partition& from, const partition& to) {
    const conversion c = convert(from, to, g_[v].shape, sizeof(float), mesh_);
    if (!c.possible) return std::numeric_limits<double>::infinity();
    double ms = 0;
    partition p = from;
    for (const conversion_step& s : c.steps) {
      ms += step_time(v, p, s);
      p = after(p, s);
    }
    return ms;
  }

 private:
  struct priced {
    std::vector<double> time;
    std::vector<std::int64_t> memory, transient;
  };
  struct job {
    std::string name;
    std::function<measurement()> run;
  };

  cost_graph collect(const std::function<void(const std::string& what)>& tell) {
    cost_graph out;
    for (const decision& n : d_.nodes) {
      cost_node node;
      node.name = n.label;
      if (n.operations.empty()) {
        node.time.assign(n.choices(), 0.0);
        node.memory.assign(n.choices(), 0);
      } else {
        auto [at, fresh] = unique_.try_emplace(choices_of(n));
        if (fresh) {
          for (std::size_t c = 0; c < n.choices(); ++c) {
            if (tell) tell(n.label + " [" + n.names[c] + "]");
            price(n, c, at->second);
          }
        }
        node.time = at->second.time;
        node.memory = at->second.memory;
        node.transient = at->second.transient;
      }
      out.nodes.push_back(std::move(node));
    }
    for (const decision_edge& e : d_.edges) out.edges.push_back(edge(e));
    return out;
  }

  void put(std::string& out, const assignment& a) const {
    for (int axis = 0; axis < mesh_.rank(); ++axis) out += static_cast<char>('a' + a.factor[axis] + 2);
    if (a.regather) out += '!';
  }
  // What a decision computes under which choices: sums of equal gradients may have other choices in other places.
  std::string choices_of(const decision& n) const {
    std::string out = fingerprint(g_, n.operations);
    for (const auto& choice : n.assigned) {
      out += '|';
      for (const assignment& a : choice) put(out, a);
    }
    return out;
  }

  measurement look_up(const std::string& k, const std::function<measurement()>& measure_it) {
    ++wanted;
    const auto at = table_.entries.find(k);
    if (at != table_.entries.end()) return at->second;
    ++measured;
    fresh_.push_back({k, measure_it});
    return table_.entries[k] = measure_it();
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

  void price(const decision& n, std::size_t c, priced& into) {
    sharding plan = sharding::replicated(g_);
    for (std::size_t i = 0; i < n.operations.size(); ++i)
      plan.assigned[static_cast<std::size_t>(n.operations[i])] = n.assigned[c][i];
    program p = lower(g_, mesh_, plan, n.operations, sizeof(float));
    plan_memory(p);
    const std::string k = key(n.label + " [" + n.names[c] + "]", n.operations, plan, false);
    const measurement m = look_up(k, [this, p] { return measure(pool_, p, random_, kernels_); });
    const program_memory memory = memory_of(p, g_);
    into.time.push_back(m.median);
    into.memory.push_back(memory.kept);
    into.transient.push_back(memory.transient);
  }

  double step_time(int v, const partition& from, const conversion_step& s) {
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
    return look_up(k, [this, v, from, s] { return measure_step(v, from, s); }).median;
  }

  measurement measure_step(int v, const partition& from, const conversion_step& s) {
    program p;
    p.mesh = mesh_;
    const auto allocate = [&](const partition& held, long bytes, bool persistent) {
      buffer b;
      b.value = v;
      b.held = held;
      b.local = local_shape(held, g_[v].shape, mesh_);
      b.bytes = bytes > 0 ? bytes : elements(b.local) * static_cast<long>(sizeof(float));
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
    return measure(pool_, p, random_, kernels_, {5, 30, 0.02, 0.05});
  }

  cost_edge edge(const decision_edge& e) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    cost_edge out;
    out.from = e.from;
    out.to = e.to;
    const double never = std::numeric_limits<double>::infinity();
    // Few distinct partitions stand behind many choices: price those, then fill the matrix.
    std::vector<partition> from, to;
    std::vector<std::size_t> from_of, to_of;
    const auto intern = [](std::vector<partition>& all, const partition& p) {
      const auto at = std::find(all.begin(), all.end(), p);
      if (at != all.end()) return static_cast<std::size_t>(at - all.begin());
      all.push_back(p);
      return all.size() - 1;
    };
    if (a.kind != decision::forms_of_tensor)
      for (std::size_t i = 0; i < a.choices(); ++i) from_of.push_back(intern(from, held_after(g_, a, i, e.value)));
    if (b.kind != decision::forms_of_tensor)
      for (std::size_t j = 0; j < b.choices(); ++j) to_of.push_back(intern(to, needed_by(g_, b, j, e.value)));
    std::map<std::pair<std::size_t, std::size_t>, double> memo;
    for (std::size_t i = 0; i < a.choices(); ++i)
      for (std::size_t j = 0; j < b.choices(); ++j) {
        const std::size_t x = from_of.empty() ? i : from_of[i], y = to_of.empty() ? j : to_of[j];
        const auto [at, fresh] = memo.try_emplace({x, y}, 0.0);
        if (fresh) {
          if (b.kind == decision::forms_of_tensor) {  // each form made from what is there; the second may use the first
            const auto& forms = b.forms[j];
            double ms = conversion_time(e.value, from[x], forms[0]);
            if (forms.size() > 1)
              ms += std::min(conversion_time(e.value, from[x], forms[1]), conversion_time(e.value, forms[0], forms[1]));
            at->second = ms;
          } else if (a.kind == decision::forms_of_tensor) {  // a form, or a local piece of one
            at->second = never;
            for (const partition& p : a.forms[i]) {
              const conversion c = convert(p, to[y], g_[e.value].shape, sizeof(float), mesh_);
              if (c.possible && c.collectives() == 0) at->second = std::min(at->second, conversion_time(e.value, p, to[y]));
            }
          } else {
            at->second = conversion_time(e.value, from[x], to[y]);
          }
        }
        out.time.push_back(at->second);
      }
    return out;
  }

  const graph& g_;
  const graph random_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const host::kernels<float>& kernels_;
  rank_pool& pool_;
  profile_table& table_;
  std::map<std::string, priced> unique_;
  std::vector<job> fresh_;  // measured since the last second pass
};

}  // namespace cfp
