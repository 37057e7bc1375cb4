// From decisions to a cost graph: every choice and every conversion gets a time, whoever says it (a profiler, a described
// machine).
#pragma once

#include <cfp/block/decisions.hpp>
#include <cfp/runtime/lower.hpp>
#include <cfp/runtime/memory.hpp>
#include <cfp/solve/exact.hpp>

#include <functional>

namespace cfp::inline v0_1 {

/// Bytes a program keeps (weights, optimizer state, activations saved for backward) and bytes beyond them at its peak.
struct program_memory {
  long kept = 0, transient = 0;
};

/// Of a part lowered alone, what it is given counts as well: activations its backward operations read are kept in the
/// form it reads them, all else it is given is there while it runs. Gradients that are measured before they are used wait
/// for those of all other parts.
inline program_memory memory_of(const program& p, const graph& g) {
  std::vector<bool> forward(p.buffers.size()), saved(p.buffers.size());
  for (const instruction& i : p.code)
    if (i.kind == instruction::compute && g.at(i.op).when == phase::update && g.at(i.op).op->body != op_body::update && !p[i.in[0]].local.empty())
      saved[static_cast<std::size_t>(p[i.in[0]].root)] = true;
  for (const instruction& i : p.code) {
    const bool back = g.at(i.op).when != phase::forward;
    for (int b : i.in)
      if (back && (forward[static_cast<std::size_t>(p[b].root)] || p[b].persistent)) saved[static_cast<std::size_t>(p[b].root)] = true;
    if (!back)
      for (int b : i.out) forward[static_cast<std::size_t>(p[b].root)] = true;
    if (i.kind == instruction::narrow) saved[static_cast<std::size_t>(p[i.out[0]].root)] = true;
  }
  program_memory m;
  long kept_in_arena = 0;
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    if (p.buffers[b].root != static_cast<int>(b)) continue;
    const value_role role = g[p.buffers[b].value].role;
    if (p.buffers[b].persistent && (role == value_role::weight || role == value_role::state || role == value_role::accumulator)) m.kept += p.buffers[b].bytes;
    else if (p.buffers[b].persistent) (saved[b] && role == value_role::activation ? m.kept : m.transient) += p.buffers[b].bytes;
    if (!p.buffers[b].persistent && saved[b]) kept_in_arena += p.buffers[b].bytes;
  }
  m.kept += kept_in_arena;
  m.transient += p.arena_bytes > kept_in_arena ? p.arena_bytes - kept_in_arena : 0;
  return m;
}

/// Builds cost graphs; what derives from it says what programs and conversions take.
class cost_builder {
 public:
  /// `real_bytes`: of a number that is not wide.
  cost_builder(const graph& g, const mesh_shape& mesh, const decision_graph& d, long real_bytes) : g_(g), mesh_(mesh), d_(d), real_bytes_(real_bytes) {}
  virtual ~cost_builder() = default;
  long real_bytes() const { return real_bytes_; }

  /// Milliseconds of a conversion.
  double conversion_time(int v, const partition& from, const partition& to) {
    const conversion c = convert(from, to, g_[v].shape, g_[v].width(real_bytes_), mesh_);
    if (!c.possible) return std::numeric_limits<double>::infinity();
    double ms = 0;
    partition p = from;
    for (const conversion_step& s : c.steps) {
      ms += step_time(v, p, s);
      p = after(p, s);
    }
    return ms;
  }

 protected:
  struct priced {
    std::vector<double> time;
    std::vector<std::int64_t> memory, transient;
  };

  /// Milliseconds of a part's program under a choice, its memory planned.
  virtual double program_time(const decision& n, std::size_t choice, const sharding& plan, const program& p) = 0;
  /// Milliseconds of one step of a conversion.
  virtual double step_time(int v, const partition& from, const conversion_step& s) = 0;

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

  void price(const decision& n, std::size_t c, priced& into) {
    sharding plan = sharding::replicated(g_);
    for (std::size_t i = 0; i < n.operations.size(); ++i)
      plan.assigned[static_cast<std::size_t>(n.operations[i])] = n.assigned[c][i];
    std::vector<delivery> wanted;
    if (n.kind == decision::rest_of_weight) wanted.push_back({n.index, held_after(g_, n, c, n.index), n.operations.front()});
    program p = lower(g_, mesh_, plan, n.operations, real_bytes_, false, wanted);
    plan_memory(p);
    into.time.push_back(program_time(n, c, plan, p));
    const program_memory memory = memory_of(p, g_);
    into.memory.push_back(memory.kept);
    into.transient.push_back(memory.transient);
  }

  // How often a step brings a tensor from one decision to another: weights, and what updates read, once.
  int times(const decision_edge& e) const {
    const value& v = g_[e.value];
    const bool once = v.role == value_role::weight || v.role == value_role::accumulator ||
                      (v.producer >= 0 && g_.at(v.producer).when == phase::update);
    return once ? 1 : g_.passes;
  }

  cost_edge edge(const decision_edge& e) {
    const decision& a = d_.nodes[static_cast<std::size_t>(e.from)];
    const decision& b = d_.nodes[static_cast<std::size_t>(e.to)];
    const int often = times(e);
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
              const conversion c = convert(p, to[y], g_[e.value].shape, g_[e.value].width(real_bytes_), mesh_);
              if (c.possible && c.collectives() == 0) at->second = std::min(at->second, conversion_time(e.value, p, to[y]));
            }
          } else {
            at->second = conversion_time(e.value, from[x], to[y]);
          }
        }
        out.time.push_back(often * at->second);
      }
    return out;
  }

  const graph& g_;
  const mesh_shape& mesh_;
  const decision_graph& d_;
  const long real_bytes_;
  std::map<std::string, priced> unique_;
};

}  // namespace cfp
