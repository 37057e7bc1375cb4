// Operations as they are recorded, and tensors as they are declared: each with names for its dimensions.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/graphs/rule_sketch.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/shape_problem.hpp>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

class graph_record {
 public:
  graph g;
  std::string label;  ///< of the node that is read

  /// A tensor of the file that is not computed.
  int declare(const std::string& called, const std::vector<long>& shape, const std::vector<std::string>& names,
              element type, value_role role, filling fill) {
    value v;
    v.label = long_label(called);
    v.type = type;
    v.role = role;
    v.fill = fill;
    std::vector<std::string> taken;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      const bool named = d < names.size() && !names[d].empty();
      taken.push_back(free_name(named ? names[d] : name_of_size(shape[d]), taken));
      push_dim(v, taken.back(), shape[d]);
    }
    check_sizes(v);
    if (!labels_.insert(called).second) throw bad_input("two tensors are called '" + called + "'");
    return g.add(v);
  }

  /// Records an operator under a rule of its own: `op` says how it computes and how it is differentiated.
  std::vector<int> record(const op_info& op, const rule_sketch& sketch, const std::vector<int>& operands,
                          const std::vector<double>& scalars = {}) {
    const rule r = parse(sketch.text());
    return record(op, r, sketch.sizes_in(r), operands, scalars);
  }
  std::vector<int> record(const op_info& op, const rule& r, const factor_sizes& sizes, const std::vector<int>& operands,
                          const std::vector<double>& scalars = {}) {
    operation o;
    o.op = &op, o.r = r, o.sizes = sizes;
    for (const int v : operands) o.operands.push(v);
    for (const double s : scalars) o.scalars.push(s);
    const int twin = equal_to(o);
    if (twin >= 0) return {g.at(twin).results.begin(), g.at(twin).results.end()};
    std::vector<value> made;
    for (int k = 0; k < r.results.size(); ++k) made.push_back(result_of(o, k));
    std::vector<int> out;
    for (const value& v : made) {
      check_sizes(v);
      out.push_back(g.add(v));
      o.results.push(out.back());
    }
    by_operands_[out.empty() ? 0 : operands[0]].push_back(g.add(o));
    return out;
  }
  /// An operator of the catalogue under its own rule, whose "..." stands for the first dimensions of operand 0.
  int record_as_written(const op_info& op, const std::vector<int>& operands, const std::vector<double>& scalars = {}) {
    int ranks[max_operands]{};
    for (std::size_t i = 0; i < operands.size(); ++i) ranks[i] = g[operands[i]].rank();
    const rule r = parse(op.rule, ranks);
    factor_sizes sizes;
    for (int f = 0; f < r.factors.size(); ++f) {
      sizes.push(0);
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (const int d = r.operands[static_cast<int>(i)].dim_of(f); d >= 0) sizes[f] = g[operands[i]].shape[d];
    }
    return record(op, r, sizes, operands, scalars).front();
  }

  /// Names and sizes of what is stored.
  std::vector<std::pair<std::string, long>> dims_of(int id) const {
    std::vector<std::pair<std::string, long>> out;
    for (int d = 0; d < g[id].rank(); ++d) out.emplace_back(g[id].dims[d].view(), g[id].shape[d]);
    return out;
  }

  /// Gives what the node makes its name.
  void call(int id) { g[id].label = long_label(label); }

 protected:
  std::string free_label() const {
    std::string out = label + ".constant";
    for (int n = 2; labels_.count(out) > 0; ++n) out = label + ".constant" + std::to_string(n);
    return out;
  }

 private:
  // An operation that computes the same already, or -1. Of what nobody knows nobody knows that.
  int equal_to(const operation& o) const {
    const auto known = by_operands_.find(o.operands.empty() ? 0 : o.operands[0]);
    if (known == by_operands_.end() || o.op->body == op_body::routine || o.op->body == op_body::pieces) return -1;
    for (const int i : known->second)
      if (const operation& other = g.at(i); other.op == o.op && other.operands == o.operands && other.r == o.r &&
                                            other.sizes == o.sizes && other.scalars == o.scalars)
        return i;
    return -1;
  }
  static void push_dim(value& v, const std::string& called, long size) {
    if (v.rank() == max_dims) throw bad_input("a tensor has at most 8 dimensions of more than one element");
    v.group.push(static_cast<signed char>(v.rank()));
    v.shape.push(size);
    v.dims.push(name(called));
    v.lent.push(true);
  }
  static void check_sizes(const value& v) {
    if (const sentence why = size_problem(v); !why.empty()) throw bad_input(std::string(why.view()));
  }
  // A name as long as names may be: the end of it says more.
  static long_name long_label(const std::string& from) {
    constexpr std::size_t most = static_cast<std::size_t>(long_name::capacity);
    return long_name(from.size() <= most ? std::string_view(from) : std::string_view(from).substr(from.size() - most));
  }

  value result_of(const operation& o, int k) const {
    const pattern& p = o.r.results[k];
    value v;
    const std::string suffix = o.r.results.size() > 1 ? "." + std::to_string(k) : "";
    v.label = long_label(label + "." + std::string(o.op->label) + suffix);
    std::vector<std::string> taken;
    for (int i = 0; i < p.factors.size();) {
      int end = i;
      long size = 1;
      for (; end < p.factors.size() && p.group[end] == p.group[i]; ++end) size *= o.sizes[p.factors[end]];
      const std::string called = end - i > 1 ? name_of_size(size) : std::string(name_in(o, p.factors[i]).view());
      taken.push_back(free_name(called, taken));
      push_dim(v, taken.back(), size);
      i = end;
    }
    v.type = stored_as(g, o, k);
    return v;
  }
  // What a factor is called: as the first operand calls a dimension that it is all of.
  name name_in(const operation& o, int f) const {
    for (int i = 0; i < o.operands.size(); ++i) {
      const pattern& p = o.r.operands[i];
      const int at = p.dim_of(f);
      if (at < 0) continue;
      int members = 0;
      for (const signed char other : p.group) members += other == p.group[at];
      if (members == 1) return g[o.operands[i]].dims[p.group[at]];
    }
    return o.r.factors[f].label;
  }

  std::set<std::string> labels_;
  std::map<int, std::vector<int>> by_operands_;  // operations by their first operand
};

}  // namespace cfp::graphs
