// A plan as a picture for GraphViz: forward operators by stage, what each splits, and where a tensor changes its form.
#pragma once

#include <cfp/export/exported.hpp>
#include <cfp/export/plan_view.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/graphviz.hpp>

#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>

namespace cfp::inline v0_1 {

namespace detail {

struct dot_node {
  std::string label, shape;
  int stage = 0;
};
struct dot_edge {
  std::string label;
  bool converts = false;
};
// Its edges lie in the order in which they were added.
using dot_graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, dot_node, dot_edge>;

inline std::string escaped_dot(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class dot_of_view {
 public:
  explicit dot_of_view(const plan_view& view) : view_(view) {
    const graph& g = view.g();
    for (const viewed_tensor& t : view.tensors())
      if (view.is_weight(t) || view.is_input(t)) add_given(t);
    for (int o = 0; o < g.size(); ++o)
      if (view.is_forward(o)) add(o);
  }

  std::string text() const {
    std::ostringstream out;
    boost::write_graphviz(
        out, all_,
        [&](std::ostream& to, auto v) {
          to << "[label=\"" << all_[v].label << "\", shape=" << all_[v].shape << ", group=\"" << all_[v].stage << "\"]";
        },
        [&](std::ostream& to, auto e) {
          to << "[label=\"" << all_[e].label << "\"" << (all_[e].converts ? ", color=red, penwidth=2" : "") << "]";
        },
        [&](std::ostream& to) {
          to << "label=\"" << escaped_dot(view_.model()) << "; mesh " << to_string(view_.mesh())
             << "; red: the tensor changes its form\";\nnode [fontsize=10];\nedge [fontsize=8];\n";
        });
    return out.str();
  }

 private:
  std::string form(const partition& held, int v) const {
    return escaped_dot(describe(held, view_.g()[v], view_.mesh()));
  }
  void add_given(const viewed_tensor& t) {
    const viewed_form* const rest = t.resting();
    made_[t.value] = rest != nullptr ? rest->held : partition::replicated(view_.g()[t.value].rank());
    from_[t.value] = boost::add_vertex(dot_node{escaped_dot(t.name) + "\\n" + form(made_[t.value], t.value),
                                                view_.is_weight(t) ? "box" : "invhouse", std::max(t.stage, 0)},
                                       all_);
  }
  void add(int o) {
    const operation& op = view_.g().at(o);
    const viewed_tensor& first = view_.tensor(op.results[0]);
    std::string label = escaped_dot(first.name) + "\\n" + form(view_.makes(o, 0), first.value);
    if (first.recomputed) label += "\\nrecomputed";
    const auto node = boost::add_vertex(dot_node{label, "ellipse", view_.stage_of(o)}, all_);
    for (int k = 0; k < op.operands.size(); ++k) {
      const int v = op.operands[k];
      if (from_.count(v) == 0) continue;  // a constant
      const partition read = view_.reads(o, k);
      const bool same = read == made_[v];
      boost::add_edge(from_[v], node, dot_edge{same ? "" : form(read, v), !same}, all_);
    }
    for (int k = 0; k < op.results.size(); ++k) from_[op.results[k]] = node, made_[op.results[k]] = view_.makes(o, k);
  }

  const plan_view& view_;
  dot_graph all_;
  std::map<int, dot_graph::vertex_descriptor> from_;
  std::map<int, partition> made_;
};

}  // namespace detail

/// Weights and inputs are boxes and houses with how they rest, operators say how they leave their result; an edge says
/// the form in which a tensor is read, where it is another one. Nodes of one stage have one `group`.
inline exported to_dot(const plan_view& view) { return {detail::dot_of_view(view).text(), {}}; }

}  // namespace cfp
