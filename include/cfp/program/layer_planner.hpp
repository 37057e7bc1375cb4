// Plans a layer from the partitions that are given for a few of its tensors.
#pragma once

#include <cfp/core/sharded.hpp>
#include <cfp/model/complete.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/follow.hpp>
#include <cfp/program/layer_report.hpp>
#include <cfp/program/lower.hpp>

namespace cfp::inline v0_1::detail {

// The names of a tensor's dimensions as a partition is written against them.
constexpr dimensions dimensions_of(const value& v) {
  dimensions d;
  for (int i = 0; i < v.rank(); ++i) d.push(v.dims[i], v.shape[i], v.group[i]);
  return d;
}

constexpr void say_claim(sentence& s, const graph& g, const operation& o, int factor, int source) {
  say(s, "'", factor_name(g, o, factor).view(), "'");
  if (source >= 0) say(s, " as given for ", g[source].label.view());
}

constexpr void explain(layer_report& out, const graph& g, const mesh_shape& mesh, const completion& c) {
  const operation& o = g.at(c.op);
  sentence& s = out.why;
  say(s, g[o.results[0]].label.view(), " (", o.op->label, "): ");
  const std::string_view axis = mesh.axes[c.axis].label.view();
  switch (c.problem) {
    case completion::contradiction:
      out.problem = layer_report::contradiction;
      say(s, "axis '", axis, "' is to split ");
      say_claim(s, g, o, c.factor, c.source);
      say(s, ", and ");
      say_claim(s, g, o, c.other, c.other_source);
      say(s, "; give one of them otherwise, or read it through a copy that is given as the operator is to find it");
      break;
    case completion::whole_split:
      out.problem = layer_report::whole_split;
      say(s, "axis '", axis, "' is to split ");
      say_claim(s, g, o, c.factor, c.source);
      say(s, ", which must stay whole; give a partition for the operand that leaves it so");
      break;
    default: {
      out.problem = layer_report::not_divisible;
      long n = 1;
      for (int a = 0; a < mesh.rank(); ++a)
        if (c.plan.assigned[static_cast<std::size_t>(c.op)].factor[a] == c.factor) n *= mesh.size(a);
      say(s, "'", factor_name(g, o, c.factor).view(), "' has ", o.sizes[c.factor], " elements, which ", n,
          " devices along '", axis, "' do not divide");
    }
  }
}

struct layer_planner {
  graph g;
  const mesh_shape& mesh;
  long element_bytes;
  std::vector<given_partition> given{};
  layer_report out{};

  constexpr void give(std::string_view tensor, const list<placement_text, max_placements>& written) {
    if (out.problem != layer_report::nothing) return;
    const int v = g.find(tensor);
    if (v < 0) {
      out.problem = layer_report::unknown_tensor;
      say(out.why, "the layer has no tensor '", tensor, "'; it has ");
      bool first = true;
      for (const value& x : g.values)
        if (x.producer < 0) say(out.why, first ? "'" : ", '", x.label.view(), "'"), first = false;
      return;
    }
    for (int other = v + 1; other < g.value_count(); ++other)
      if (g[other].label == tensor)
        return refuse(tensor, "two tensors of the layer have this name; name them with net.called(...)");
    for (const given_partition& p : given)
      if (p.value == v) return refuse(tensor, "is given twice");
    const dimensions d = dimensions_of(g[v]);
    for (int i = 1; i < d.rank(); ++i)
      if (d.find(d.parts[i]) != i && !written.empty())
        return refuse(tensor, "has two dimensions of the same name; name them differently in the model");
    const partition_read r = read_partition(written, d, mesh);
    if (r.problem) {
      out.problem = layer_report::partition;
      say(out.why, tensor, ": ", words(r.problem, d, r.value, mesh).view());
    }
    if (r.value.is_partial() && (g[v].role == value_role::weight || g[v].type == element::index))
      return refuse(tensor, "weights and indices are not sums; they cannot be given as parts of one");
    given.push_back({v, r.value});
  }

  constexpr void plan() {
    if (out.problem != layer_report::nothing) return;
    const int result = g.loss;
    completion c = complete(g, mesh, given);
    if (c.problem != completion::nothing) return explain(out, g, mesh, c);
    const int forward_operations = g.size();
    g = gradients(g);
    c.plan.assigned.resize(g.operations.size());
    c.plan.materialised.resize(g.values.size());
    const std::vector<int> all = all_operations(g);
    follow(g, mesh, all, c.plan.assigned);
    const auto held = [&](int v) {
      const auto& m = c.plan.materialised[static_cast<std::size_t>(v)];
      return m.empty() ? need(g, v, all, c.plan.assigned) : m[0];
    };
    // The result's gradient comes in the partition the result is given in; gradients leave as their tensors are held.
    std::vector<delivery> wanted;
    const auto& result_given = c.plan.materialised[static_cast<std::size_t>(result)];
    if (!result_given.empty()) wanted.push_back({result, result_given[0], forward_operations});
    for (int v = 0; v < g.value_count(); ++v) {
      if (g[v].role == value_role::constant && g[v].of == result && !result_given.empty()) {
        c.plan.materialised[static_cast<std::size_t>(v)].push(complete_of(result_given[0]));
      }
      if (g[v].role == value_role::gradient && g[g[v].of].producer < 0 && is_total(v))
        wanted.push_back({v, complete_of(held(g[v].of)), g.size()});
    }
    const program p = lower(g, mesh, c.plan, all, element_bytes, false, wanted);
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      if (p.code[i].kind != instruction::reshard) continue;
      const conversion_step& s = p.code[i].step;
      if (!s.communicates()) continue;
      const buffer& from = p[p.code[i].in[0]];
      const value& v = g[from.value];
      const bool of_weight = v.role == value_role::gradient && g[v.of].role == value_role::weight;
      // A conversion belongs to the operation it is made for; the result is delivered before anything goes backward.
      const bool is_forward =
          v.role != value_role::gradient && (next_operation(p, i) < forward_operations || from.value == result);
      scheduled_collectives& to = of_weight ? out.gradients : is_forward ? out.forward : out.backward;
      const long bytes = bytes_sent(s, from.held, elements(v.shape) * element_bytes, mesh);
      if (to.size() == to.collectives.capacity) {
        ++to.over;
        out.problem = layer_report::too_long;
        continue;
      }
      to.collectives.push({s.collective(), mesh.axes[s.axis].label, v.label, bytes});
      to.bytes += bytes;
    }
  }

  // The gradient of something partial is replicated.
  static constexpr partition complete_of(partition p) {
    for (partition::debt& d : p.partial) d = {};
    return p;
  }

  constexpr void refuse(std::string_view tensor, std::string_view why) {
    out.problem = layer_report::partition;
    say(out.why, tensor, ": ", why);
  }

  constexpr int next_operation(const program& p, std::size_t i) const {
    for (; i < p.code.size(); ++i)
      if (p.code[i].is_operator()) return p.code[i].op;
    return g.size();
  }

  // The sum of all contributions is the last gradient of its tensor.
  constexpr bool is_total(int v) const {
    for (int w = v + 1; w < g.value_count(); ++w)
      if (g[w].role == value_role::gradient && g[w].of == g[v].of) return false;
    return true;
  }
};

}  // namespace cfp::detail
