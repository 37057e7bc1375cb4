// ONNX files as models: every node becomes operators with rules, from inputs to the loss.
#pragma once

#include <cfp/graphs/finished.hpp>
#include <cfp/graphs/onnx_operators.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

class onnx_reader {
 public:
  onnx_reader(const onnx_file& file, const graph_options& options, int caution) : file_(file), options_(options) {
    p_.caution = caution;
  }

  read_graph run() {
    declare_tensors();
    declare_inputs();
    for (const onnx_declared& v : file_.values) declared_.emplace(v.name, &v);
    for (const onnx_declared& v : file_.outputs) declared_.emplace(v.name, &v);
    const std::string output = chosen_output();
    const std::vector<bool> needed = needed_for(output);
    for (const onnx_node& n : file_.nodes)
      if (needed[n.number]) add(n);
    const auto at = values_.find(output);
    if (at == values_.end()) throw bad_input(file_.path + ": output '" + output + "' is made by no node");
    finish_with_loss(p_, at->second, output, out_);
    if (!unknown_.empty()) {
      std::string names;
      for (const std::string& op : unknown_) names += (names.empty() ? "" : ", ") + op;
      out_.said.push_back("operators that nobody here knows, all of whose dimensions stay whole: " + names);
    }
    out_.sizes = "nodes=" + std::to_string(file_.nodes.size()) + " weights=" + std::to_string(out_.weights.size());
    for (const auto& [symbol, size] : out_.used) out_.sizes += " " + symbol + "=" + std::to_string(size);
    return std::move(out_);
  }

 private:
  static std::string said_node(const onnx_node& n) {
    return "node " + std::to_string(n.number) + (n.name.empty() ? "" : " '" + n.name + "'") + " (" +
           (n.domain.empty() || n.domain == "ai.onnx" ? "" : n.domain + ".") + n.op + ")";
  }

  void declare_tensors() {
    for (const onnx_tensor& t : file_.tensors) {
      const std::string where = file_.path + ": initializer '" + t.name + "'";
      const long n = checked_elements(t, where);
      const bool weight = !onnx_element_of(t.type).whole && !t.dims.empty() && n > 0;
      held h = weight ? weight_of(t) : held_constant(numbers_of(t, where));
      if (weight && !t.elsewhere && n <= most_known && !is_finite(t, where)) h = held_constant(numbers_of(t, where));
      if (!values_.emplace(t.name, h).second) throw bad_input(where + ": there are two of this name");
    }
  }
  held weight_of(const onnx_tensor& t) {
    auto given = std::make_shared<given_tensor>();
    given->label = t.name;
    given->shape = t.dims;
    given->is_weight = true;
    if (t.type == 1) {
      given->floats = !t.raw.empty() || t.floats.empty()
                          ? t.raw
                          : std::string_view(reinterpret_cast<const char*>(t.floats.data()), 4 * t.floats.size());
    }
    return held_given(given);
  }
  // A mask of infinities is no weight.
  static bool is_finite(const onnx_tensor& t, const std::string& where) {
    for (const double x : numbers_of(t, where).at)
      if (!std::isfinite(x)) return false;
    return true;
  }

  void declare_inputs() {
    for (const onnx_declared& v : file_.inputs) {
      const std::string where = file_.path + ": input '" + v.name + "'";
      if (values_.count(v.name) > 0) {
        if (!inputs_.insert(v.name).second) throw bad_input(where + ": there are two of this name");
        continue;  // an initializer
      }
      const onnx_element e = onnx_element_of(v.type);
      if (e.bytes == 0)
        throw bad_input(where + ": its elements are of type " + std::to_string(v.type) +
                        " of TensorProto.DataType, which is not read");
      if (!v.has_shape) throw bad_input(where + ": the file does not say its shape");
      auto given = std::make_shared<given_tensor>();
      given->label = v.name;
      given->is_whole = e.whole;
      for (std::size_t d = 0; d < v.dims.size(); ++d) {
        given->shape.push_back(size_of_input(v, d, where));
        given->names.push_back(name_of_input(v.dims[d].second, d));
      }
      if (elements_of(given->shape) < 1) throw bad_input(where + ": its shape is " + shape_text(given->shape));
      inputs_.insert(v.name);
      values_.emplace(v.name, held_given(given));
    }
  }
  std::string name_of_input(const std::string& symbol, std::size_t d) const {
    if (!symbol.empty() && std::isalpha(static_cast<unsigned char>(symbol[0])) != 0) return symbol;
    return d == 0 ? "batch" : "";
  }
  long size_of_input(const onnx_declared& v, std::size_t d, const std::string& where) {
    const auto& [size, symbol] = v.dims[d];
    const std::string called = symbol.empty() ? "dimension " + std::to_string(d) : "'" + symbol + "'";
    if (size >= 0 && symbol.empty()) {
      if (size < 1) throw bad_input(where + ": " + called + " has size " + std::to_string(size));
      return size;
    }
    if (size < -1) throw bad_input(where + ": " + called + " has size " + std::to_string(size));
    if (const auto at = options_.dims.find(symbol); !symbol.empty() && at != options_.dims.end())
      return out_.used[symbol] = at->second;
    std::string small;
    for (const char c : symbol) small += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const bool is_sequence = small.find("seq") != std::string::npos || (d == 1 && symbol.empty());
    const bool is_batch = small.find("batch") != std::string::npos || small == "n" || d == 0;
    if (is_sequence && options_.sequence > 0) return out_.used["seq"] = options_.sequence;
    if (is_batch && !is_sequence && options_.batch > 0) return out_.used["batch"] = options_.batch;
    throw bad_input(where + ": only you know the size of " + called + "; give --dim " +
                    (symbol.empty() ? "NAME=SIZE (it has no name: write a file with one)" : symbol + "=SIZE"));
  }

  std::string chosen_output() {
    if (file_.outputs.empty()) throw bad_input(file_.path + ": the graph has no outputs");
    const onnx_declared* chosen = nullptr;
    for (const onnx_declared& v : file_.outputs) {
      const bool fits =
          options_.output.empty() ? v.type == 0 || !onnx_element_of(v.type).whole : v.name == options_.output;
      if (fits && chosen == nullptr) chosen = &v;
    }
    if (chosen == nullptr)
      throw bad_input(file_.path + (options_.output.empty() ? ": the graph has no output of numbers"
                                                            : ": the graph has no output '" + options_.output + "'"));
    if (file_.outputs.size() > 1)
      out_.said.push_back("of " + std::to_string(file_.outputs.size()) + " outputs '" + chosen->name + "' is taken");
    return chosen->name;
  }

  // Which nodes an output comes from. Nodes stand before those that read them.
  std::vector<bool> needed_for(const std::string& output) const {
    std::set<std::string_view> wanted = {output};
    std::vector<bool> out(file_.nodes.size());
    for (std::size_t i = file_.nodes.size(); i-- > 0;) {
      const onnx_node& n = file_.nodes[i];
      for (const std::string& made : n.outputs) out[i] = out[i] || wanted.count(made) > 0;
      if (out[i]) wanted.insert(n.inputs.begin(), n.inputs.end());
    }
    return out;
  }

  void add(const onnx_node& n) {
    const std::string where = file_.path + ": " + said_node(n) + ": ";
    try {
      onnx_call c{p_, n, {}, {}, file_.opset};
      for (const std::string& x : n.inputs) {
        c.there.push_back(!x.empty());
        const auto at = x.empty() ? values_.end() : values_.find(x);
        if (!x.empty() && at == values_.end())
          throw bad_input("its operand '" + x + "' is no input, and made by no node before it");
        c.in.push_back(x.empty() ? held{} : at->second);
      }
      while (!c.there.empty() && !c.there.back()) c.there.pop_back(), c.in.pop_back();
      for (const onnx_attribute& a : n.attributes)
        if (a.has_graph) throw bad_input("attribute '" + a.name + "' is a graph, which is not read");
      p_.build.label = n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name;
      const onnx_results results = results_of(c);
      for (const held& h : results)
        if (h.known) budget_.take(h.known->at.size());
      take(n, results);
    } catch (const bad_input& e) {
      throw bad_input(where + e.what());
    } catch (const error& e) {
      throw bad_input(where + e.what());
    }
  }
  onnx_results results_of(const onnx_call& c) {
    const bool standard = c.node.domain.empty() || c.node.domain == "ai.onnx" || c.node.domain == "com.microsoft";
    if (c.node.op == "Constant" && standard) return {constant_of(c)};
    if (standard)
      if (onnx::folded known = onnx::fold(c)) return {held_constant(std::move(*known))};
    const int before = p_.build.g.size();
    onnx_results out = standard ? onnx::translated(c) : onnx_results{};
    if (out.empty()) out = unknown(c);
    if (p_.build.g.size() > before && out.front().id >= 0 && out.size() == 1) p_.build.call(out.front().id);
    return out;
  }
  void take(const onnx_node& n, const onnx_results& results) {
    for (std::size_t k = 0; k < n.outputs.size() && k < results.size(); ++k)
      if (!n.outputs[k].empty() && !values_.emplace(n.outputs[k], results[k]).second)
        throw bad_input("its result '" + n.outputs[k] + "' is made twice");
  }
  static held constant_of(const onnx_call& c) {
    for (const onnx_attribute& a : c.node.attributes) {
      if (!a.tensor.empty()) return held_constant(numbers_of(a.tensor.front(), "attribute '" + a.name + "'"));
      if (a.name == "value_float") return held_constant({{}, {static_cast<double>(a.real)}, false});
      if (a.name == "value_int") return held_constant({{}, {static_cast<double>(a.integer)}, true});
      if (a.name == "value_floats")
        return held_constant({{static_cast<long>(a.reals.size())}, {a.reals.begin(), a.reals.end()}, false});
      if (a.name == "value_ints")
        return held_constant({{static_cast<long>(a.integers.size())}, {a.integers.begin(), a.integers.end()}, true});
    }
    throw bad_input("it holds no numbers that are read");
  }

  // All of its dimensions stay whole; the file says its results' shapes.
  onnx_results unknown(const onnx_call& c) {
    std::vector<std::vector<long>> shapes;
    bool whole = true;
    for (const std::string& made : c.node.outputs) {
      const auto at = declared_.find(made);
      if (at == declared_.end() || !at->second->has_shape)
        throw bad_input("nobody here knows this operator, and the file does not say the shape of its result '" + made +
                        "'; let onnx.shape_inference write it");
      std::vector<long> shape;
      for (std::size_t d = 0; d < at->second->dims.size(); ++d)
        shape.push_back(size_of_input(*at->second, d, "result '" + made + "'"));
      if (elements_of(shape) < 1) throw bad_input("the shape of its result '" + made + "' is " + shape_text(shape));
      shapes.push_back(shape);
      whole = whole && onnx_element_of(at->second->type).whole;
    }
    std::vector<held> in;
    for (std::size_t i = 0; i < c.in.size(); ++i)
      if (c.has(i)) in.push_back(c.in[i]);
    if (in.empty() || shapes.empty()) throw bad_input("nobody here knows this operator, and it has no operands");
    unknown_.insert(c.node.op);
    return all_of(p_.build, c.node.op, c.attributes(), in, shapes, whole);
  }

  const onnx_file& file_;
  const graph_options& options_;
  row_operators p_;
  known_budget budget_;
  std::map<std::string, held> values_;
  std::map<std::string, const onnx_declared*> declared_;
  std::set<std::string> inputs_, unknown_;
  read_graph out_;
};

}  // namespace cfp::graphs
