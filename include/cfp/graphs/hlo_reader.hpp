// HLO modules as models: every instruction becomes operators with rules, computations that are called stand where they
// are called.
#pragma once

#include <cfp/graphs/finished.hpp>
#include <cfp/graphs/hlo_literal.hpp>
#include <cfp/graphs/hlo_movements.hpp>

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

class hlo_reader {
 public:
  hlo_reader(const hlo_file& file, const graph_options& options, int caution) : file_(file), options_(options) {
    p_.caution = caution;
    for (const hlo_computation& c : file.computations)
      if (!by_id_.emplace(c.id, &c).second)
        throw bad_input(file_.path + ": two computations have the number " + std::to_string(c.id));
  }

  read_graph run() {
    const hlo_computation& entry = by_id_.count(file_.entry) > 0 ? *by_id_.at(file_.entry) : file_.computations.back();
    hlo_value root = evaluated(entry, given_to(entry), 0);
    const std::string called = "the result of " + (entry.name.empty() ? "the module" : entry.name);
    if (!root.parts.empty()) root = chosen_part(root);
    finish_with_loss(p_, written_out(p_, root), called, out_);
    for (const std::shared_ptr<given_tensor>& t : given_)
      if (const int v = out_.forward.find(t->label); t->below > 0 && (v < 0 || out_.forward[v].type != element::index))
        throw bad_input(file_.path + ": parameter '" + t->label +
                        "' is compared as indices are, with bounds, and selects nothing of numbers");
    if (!unknown_.empty()) {
      std::string names;
      for (const std::string& op : unknown_) names += (names.empty() ? "" : ", ") + op;
      out_.said.push_back("instructions that nobody here knows, all of whose dimensions stay whole: " + names);
    }
    for (const std::string& name : options_.inputs)
      if (taken_inputs_.count(name) == 0) throw bad_input(file_.path + ": there is no parameter '" + name + "'");
    out_.sizes = "instructions=" + std::to_string(count_) + " weights=" + std::to_string(out_.weights.size());
    return std::move(out_);
  }

 private:
  // Numbers are weights unless said otherwise, whole numbers inputs.
  std::vector<hlo_value> given_to(const hlo_computation& entry) {
    std::map<long, const hlo_instruction*> parameters;
    for (const hlo_instruction& i : entry.instructions)
      if (i.op == "parameter" && !parameters.emplace(i.parameter, &i).second)
        throw bad_input(file_.path + ": two parameters have the number " + std::to_string(i.parameter));
    std::vector<hlo_value> out;
    std::set<std::string> labels;
    for (const auto& [number, i] : parameters) {
      const std::string where = file_.path + ": parameter " + std::to_string(number) + " '" + i->name + "'";
      if (number != static_cast<long>(out.size())) throw bad_input(where + ": one before it is missing");
      const hlo_kind kind = hlo_kind_of(i->shape.type);
      if (kind == hlo_kind::none)
        throw bad_input(where + ": its elements are of type " + std::to_string(i->shape.type) +
                        " of PrimitiveType, which is not read");
      if (elements_of(i->shape.dims) < 1) throw bad_input(where + ": its shape is " + shape_text(i->shape.dims));
      auto given = std::make_shared<given_tensor>();
      given->label = i->source.empty() ? i->name : i->source;
      if (!labels.insert(given->label).second) given->label += "." + std::to_string(number);
      given->shape = i->shape.dims;
      given->is_whole = kind == hlo_kind::whole;
      given->is_weight = !given->is_whole && !is_input(*i, number);
      if (!given->is_weight) given->names = {"batch"};
      out.push_back(hlo_whole(held_given(given)));
      given_.push_back(given);
    }
    return out;
  }
  bool is_input(const hlo_instruction& i, long number) {
    bool out = false;
    for (const std::string& name : {std::to_string(number), i.name, i.source})
      if (options_.inputs.count(name) > 0) out = true, taken_inputs_.insert(name);
    return out;
  }

  hlo_value chosen_part(const hlo_value& root) {
    for (std::size_t k = 0; k < root.parts.size(); ++k) {
      const bool wanted = options_.output.empty() ? !root.parts[k].small.is_whole && root.parts[k].parts.empty()
                                                  : options_.output == std::to_string(k);
      if (!wanted) continue;
      out_.said.push_back("of " + std::to_string(root.parts.size()) + " results number " + std::to_string(k) +
                          " is taken");
      return root.parts[k];
    }
    throw bad_input(file_.path + (options_.output.empty() ? ": none of its results holds numbers"
                                                          : ": there is no result '" + options_.output + "'"));
  }

  hlo_value evaluated(const hlo_computation& c, const std::vector<hlo_value>& arguments, int depth) {
    if (depth > 32) throw bad_input(file_.path + ": computations call each other more than 32 deep");
    std::map<long, hlo_value> made;
    for (const hlo_instruction& i : c.instructions) {
      if (++count_ > 100000) throw bad_input(file_.path + ": it has more than 100000 instructions");
      std::string why;
      try {
        p_.build.label = i.name;
        const int before = p_.build.g.size();
        hlo_value out = result_of(i, made, arguments, depth);
        if (out.small.known) budget_.take(out.small.known->at.size());
        if (p_.build.g.size() > before && i.op != "call" && out.small.id >= 0) p_.build.call(out.small.id);
        if (!made.emplace(i.id, std::move(out)).second) throw bad_input("two instructions have its number");
        continue;
      } catch (const error& e) {
        why = e.what();
      }
      const bool said = why.starts_with(file_.path + ":");
      throw bad_input(said ? why : file_.path + ": instruction '" + i.name + "' (" + i.op + "): " + why);
    }
    const auto root = made.find(c.root);
    if (root == made.end()) throw bad_input(file_.path + ": computation '" + c.name + "' has no result");
    return root->second;
  }

  const hlo_computation& called_by(const hlo_instruction& i) const {
    if (i.called.size() != 1 || by_id_.count(i.called[0]) == 0) throw bad_input("what it calls is not there");
    return *by_id_.at(i.called[0]);
  }

  hlo_value result_of(const hlo_instruction& i, const std::map<long, hlo_value>& made,
                      const std::vector<hlo_value>& arguments, int depth) {
    std::vector<hlo_value> in;
    for (const long id : i.operands) {
      const auto at = made.find(id);
      if (at == made.end()) throw bad_input("an operand of it is made by no instruction before it");
      in.push_back(at->second);
    }
    if (i.op == "parameter") {
      if (i.parameter < 0 || i.parameter >= static_cast<long>(arguments.size())) throw bad_input("nobody gives it");
      return arguments[static_cast<std::size_t>(i.parameter)];
    }
    if (i.op == "tuple") {
      hlo_value out;
      out.parts = std::move(in);
      return out;
    }
    if (i.op == "call" || i.op == "fusion") return evaluated(called_by(i), in, depth + 1);
    for (const char* const op : {"while", "conditional", "infeed", "outfeed", "send", "recv"})
      if (i.op == op) throw bad_input("it is not read: write the model without loops and branches (unrolled)");
    if (i.op == "get-tuple-element") {
      if (in.size() != 1 || i.tuple_index < 0 || i.tuple_index >= static_cast<long>(in[0].parts.size()))
        throw bad_input("there is no such part of its operand");
      return in[0].parts[static_cast<std::size_t>(i.tuple_index)];
    }
    for (const hlo_value& v : in)
      if (!v.parts.empty() && i.op != "optimization-barrier") throw bad_input("its operand is a tuple");
    if (hlo_kind_of(i.shape.type) == hlo_kind::none && i.shape.parts.empty())
      throw bad_input("its elements are of type " + std::to_string(i.shape.type) +
                      " of PrimitiveType, which is not read");
    if (i.shape.parts.empty() && elements_of(i.shape.dims) < 1)
      throw bad_input("its shape is " + shape_text(i.shape.dims));
    return computed(i, in);
  }

  hlo_value computed(const hlo_instruction& i, const std::vector<hlo_value>& in) {
    const auto need = [&](std::size_t n) {
      if (in.size() != n)
        throw bad_input("it has " + std::to_string(in.size()) + " operands, and takes " + std::to_string(n));
    };
    if (i.op == "constant") return hlo_whole(held_constant(numbers_of(i, i.name)));
    if (i.op == "iota") return hlo::counted(i);
    if (in.empty()) throw bad_input("nobody here knows it, and it has no operands");
    if (i.op == "copy" || i.op == "optimization-barrier") return in[0];
    if (i.op == "convert") return need(1), hlo::converted(p_, i, in[0]);
    if (i.op == "broadcast") return need(1), repeated(p_, in[0], i.dims, i.shape.dims);
    if (i.op == "reshape") return need(1), seen_as(p_, in[0], i.shape.dims);
    if (i.op == "transpose") return need(1), hlo::transposed(p_, i, in[0]);
    if (i.op == "dot") return need(2), hlo::product(p_, i, in[0], in[1]);
    if (i.op == "slice") return need(1), hlo::sliced(p_, i, in[0]);
    if (i.op == "concatenate") return hlo::joined(p_, i, in);
    hlo_value out;
    if (i.op == "reduce" && in.size() == 2 && hlo::reduced(p_, i, in[0], in[1], reducer(i), out)) return out;
    if (i.op == "gather" && (need(2), hlo::gathered(p_, i, in[0], in[1], out))) return out;
    if (i.op == "compare" && (need(2), decided(i, in[0], in[1], out))) return out;
    if (i.op == "select" && in.size() == 3 && in[0].small.known && in[0].small.known->is_uniform())
      return in[in[0].small.known->at.front() != 0 ? 1 : 2];
    if (i.op == "rsqrt" || hlo::is_pointwise(i.op) || !hlo::element_function(i).empty()) {
      need(i.op == "select" || i.op == "clamp" ? 3 : in.size() < 2 ? 1 : 2);
      return hlo::element_by_element(p_, i, in);
    }
    return unknown(i, in);
  }

  // What a reduction does with two numbers: the computation it calls is one instruction of its parameters.
  std::string reducer(const hlo_instruction& i) const {
    const hlo_computation& c = called_by(i);
    if (c.instructions.size() != 3) return "";
    for (const hlo_instruction& r : c.instructions)
      if (r.id == c.root) return r.operands.size() == 2 && r.operands[0] != r.operands[1] ? r.op : "";
    return "";
  }
  // Indices are from 0 on and below what they select from: whether they are is no question. Those that turn out to
  // select nothing are refused in the end.
  bool decided(const hlo_instruction& i, const hlo_value& x, const hlo_value& y, hlo_value& out) const {
    if (!x.small.given || !x.small.is_whole || !y.small.known || !y.small.known->is_uniform()) return false;
    const double with = y.small.known->at.front();
    given_tensor& t = *x.small.given;
    const bool from_below = (i.direction == "LT" && with <= 0) || (i.direction == "GE" && with <= 0);
    const bool from_above = (i.direction == "LE" && with >= 0) || (i.direction == "LT" && with > 0);
    if (!from_below && !from_above) return false;
    const long below = from_above ? static_cast<long>(with) + (i.direction == "LE" ? 1 : 0) : 1l << 31;
    t.below = t.below == 0 ? below : std::min(t.below, below);
    const double is = from_below && i.direction == "LT" ? 0 : 1;
    out = {held_constant({std::vector<long>(x.shape.size(), 1), {is}, true}), x.shape};
    return true;
  }
  hlo_value unknown(const hlo_instruction& i, const std::vector<hlo_value>& in) {
    const std::vector<hlo_shape> results = i.shape.parts.empty() ? std::vector<hlo_shape>{i.shape} : i.shape.parts;
    std::vector<std::vector<long>> shapes;
    bool whole = true;
    for (const hlo_shape& s : results) {
      if (hlo_kind_of(s.type) == hlo_kind::none || elements_of(s.dims) < 1)
        throw bad_input("a result of it is not read");
      shapes.push_back(s.dims);
      whole = whole && hlo_kind_of(s.type) == hlo_kind::whole;
    }
    std::vector<held> all;
    for (const hlo_value& v : in) all.push_back(written_out(p_, v));
    unknown_.insert(i.op);
    std::string attributes = i.target + " " + shape_text(i.dims);
    for (const auto& [field, numbers] : i.gather) attributes += " " + shape_text(numbers);
    const std::vector<held> made = all_of(p_.build, i.op, attributes, all, shapes, whole);
    if (i.shape.parts.empty()) return hlo_whole(made.front());
    hlo_value out;
    for (const held& h : made) out.parts.push_back(hlo_whole(h));
    return out;
  }

  const hlo_file& file_;
  const graph_options& options_;
  row_operators p_;
  known_budget budget_;
  std::map<long, const hlo_computation*> by_id_;
  std::set<std::string> unknown_, taken_inputs_;
  std::vector<std::shared_ptr<given_tensor>> given_;
  long count_ = 0;
  read_graph out_;
};

}  // namespace cfp::graphs
