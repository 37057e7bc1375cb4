// Writes models of the format ONNX, for tests: a ModelProto of nodes, initializers, inputs and outputs.
#pragma once

#include <protozero/pbf_writer.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace onnx_tests {

enum : int { f32 = 1, i64 = 7, truth = 9 };

using attribute = std::pair<const char*, std::variant<std::int64_t, float, const char*, std::vector<std::int64_t>>>;
/// A dimension: its size, or the symbol that stands for one.
using dim = std::variant<std::int64_t, const char*>;

class model_writer {
 public:
  explicit model_writer(int opset = 20) : opset_(opset) {}

  /// Returns the result's name, which is the node's.
  std::string node(const std::string& op, const std::vector<std::string>& in, const std::vector<attribute>& with = {},
                   std::vector<std::string> out = {}) {
    std::string text;
    protozero::pbf_writer to(text);
    const std::string name = op + "_" + std::to_string(++count_);
    if (out.empty()) out = {name};
    for (const std::string& x : in) to.add_string(1, x);
    for (const std::string& x : out) to.add_string(2, x);
    to.add_string(3, name);
    to.add_string(4, op);
    for (const auto& [label, holds] : with) {
      protozero::pbf_writer a(to, 5);
      a.add_string(1, label);
      if (const auto* const i = std::get_if<std::int64_t>(&holds)) a.add_int64(3, *i), a.add_int32(20, 2);
      if (const auto* const x = std::get_if<float>(&holds)) a.add_float(2, *x), a.add_int32(20, 1);
      if (const auto* const s = std::get_if<const char*>(&holds)) a.add_string(4, *s), a.add_int32(20, 3);
      if (const auto* const all = std::get_if<std::vector<std::int64_t>>(&holds)) {
        for (const std::int64_t n : *all) a.add_int64(8, n);
        a.add_int32(20, 7);
      }
    }
    nodes_.push_back(text);
    return out.front();
  }

  bool elsewhere = false;  ///< weights have their sizes here and their numbers in another file

  /// Weights that differ from each other, around 0.
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims, float scale = 0.3f) {
    std::int64_t n = elsewhere ? 0 : 1;
    for (const std::int64_t d : dims) n *= d;
    std::string raw;
    for (std::int64_t i = 0; i < n; ++i) {
      random_ = random_ * 1664525u + 1013904223u;
      const float x = (static_cast<float>(random_ >> 8) * 0x1p-23f - 1.0f) * scale;
      raw.append(reinterpret_cast<const char*>(&x), sizeof x);
    }
    return tensor(name, f32, dims, raw);
  }
  std::string integers(const std::string& name, const std::vector<std::int64_t>& dims,
                       const std::vector<std::int64_t>& at) {
    return tensor(name, i64, dims, {reinterpret_cast<const char*>(at.data()), at.size() * 8});
  }
  /// Called by its number where it has no name.
  std::string number(std::string name, float x) {
    if (name.empty()) name = "number_" + std::to_string(tensors_.size());
    return tensor(name, f32, {}, {reinterpret_cast<const char*>(&x), sizeof x});
  }
  std::string tensor(const std::string& name, int type, const std::vector<std::int64_t>& dims, const std::string& raw) {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_packed_int64(1, dims.begin(), dims.end());
    to.add_int32(2, type);
    to.add_string(8, name);
    if (elsewhere && type == f32 && !dims.empty()) to.add_int32(14, 1);
    else to.add_bytes(9, raw);
    tensors_.push_back(text);
    return name;
  }
  std::string input(const std::string& name, int type, const std::vector<dim>& dims) {
    inputs_.push_back(declared(name, type, dims));
    return name;
  }
  void output(const std::string& name, int type, const std::vector<dim>& dims) {
    outputs_.push_back(declared(name, type, dims));
  }
  void value(const std::string& name, int type, const std::vector<dim>& dims) {
    values_.push_back(declared(name, type, dims));
  }

  std::string bytes() const {
    std::string all, graph;
    protozero::pbf_writer g(graph);
    for (const std::string& n : nodes_) g.add_message(1, n);
    g.add_string(2, "graph");
    for (const std::string& t : tensors_) g.add_message(5, t);
    for (const std::string& v : inputs_) g.add_message(11, v);
    for (const std::string& v : outputs_) g.add_message(12, v);
    for (const std::string& v : values_) g.add_message(13, v);
    protozero::pbf_writer to(all);
    to.add_int64(1, 9);
    to.add_message(7, graph);
    protozero::pbf_writer opset(to, 8);
    opset.add_string(1, "");
    opset.add_int64(2, opset_);
    opset.commit();
    return all;
  }

 private:
  static std::string declared(const std::string& name, int type, const std::vector<dim>& dims) {
    std::string text;
    protozero::pbf_writer to(text);
    to.add_string(1, name);
    protozero::pbf_writer kind(to, 2);
    protozero::pbf_writer of(kind, 1);
    of.add_int32(1, type);
    protozero::pbf_writer shape(of, 2);
    for (const dim& d : dims) {
      protozero::pbf_writer one(shape, 1);
      if (const auto* const size = std::get_if<std::int64_t>(&d)) one.add_int64(1, *size);
      else one.add_string(2, std::get<const char*>(d));
    }
    return shape.commit(), of.commit(), kind.commit(), text;
  }

  int opset_, count_ = 0;
  std::uint32_t random_ = 1;
  std::vector<std::string> nodes_, tensors_, inputs_, outputs_, values_;
};

struct block_sizes {
  std::int64_t layers = 2, batch = 4, sequence = 8, width = 16, heads = 4, hidden = 32, vocabulary = 24;
};

/// A decoder as exporters write it: heads by reshapes whose shapes are computed, its loss the mean cross entropy.
inline std::string transformer_block(const block_sizes& s, bool causal = false, bool elsewhere = false) {
  model_writer m;
  m.elsewhere = elsewhere;
  int number = 0;
  const auto integer = [&](const std::vector<std::int64_t>& at, bool scalar = false) {
    return m.integers(
        "i" + std::to_string(++number),
        scalar ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{static_cast<std::int64_t>(at.size())}, at);
  };
  const auto norm = [&](const std::string& x, const std::string& name) {
    return m.node("LayerNormalization", {x, m.weight(name + ".weight", {s.width}), m.weight(name + ".bias", {s.width})},
                  {{"axis", std::int64_t(-1)}, {"epsilon", 1e-5f}});
  };
  const auto linear = [&](const std::string& x, const std::string& name, std::int64_t in, std::int64_t out) {
    return m.node("Add",
                  {m.node("MatMul", {x, m.weight(name + ".weight", {in, out})}), m.weight(name + ".bias", {out})});
  };
  m.input("tokens", i64, {"batch", "seq"});
  m.input("targets", i64, {"batch", "seq"});
  std::string x = m.node("Gather", {m.weight("words", {s.vocabulary, s.width}), "tokens"});
  for (std::int64_t l = 0; l < s.layers; ++l) {
    const std::string p = "h." + std::to_string(l) + ".";
    const std::string y = norm(x, p + "ln_1"), shape = m.node("Shape", {y});
    const auto size = [&](std::int64_t d) {
      return m.node("Unsqueeze", {m.node("Gather", {shape, integer({d}, true)}), integer({0})});
    };
    const std::string as_heads =
        m.node("Concat", {size(0), size(1), integer({s.heads, s.width / s.heads})}, {{"axis", std::int64_t(0)}});
    const auto part = [&](const std::string& name, std::vector<std::int64_t> order) {
      return m.node("Transpose", {m.node("Reshape", {linear(y, p + name, s.width, s.width), as_heads})},
                    {{"perm", std::move(order)}});
    };
    const std::string q = part("q", {0, 2, 1, 3}), k = part("k", {0, 2, 3, 1}), v = part("v", {0, 2, 1, 3});
    std::string scores = m.node("Mul", {m.node("MatMul", {q, k}), m.number(p + "scale", 0.5f)});
    if (causal) {
      const std::string ones = m.node("ConstantOfShape", {integer({s.sequence, s.sequence})});
      const std::string rows = m.node(
          "Unsqueeze",
          {m.node("Range", {integer({0}, true), integer({s.sequence}, true), integer({1}, true)}), integer({1})});
      const std::string columns = m.node("Unsqueeze", {m.node("Squeeze", {rows}), integer({0})});
      scores = m.node("Where", {m.node("GreaterOrEqual", {rows, columns}), scores,
                                m.node("Sub", {ones, m.number(p + "far", 1e30f)})});
    }
    const std::string shares = m.node("Softmax", {scores}, {{"axis", std::int64_t(-1)}});
    const std::string merged =
        m.node("Reshape",
               {m.node("Transpose", {m.node("MatMul", {shares, v})}, {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}}),
                integer({0, 0, -1})});
    x = m.node("Add", {x, linear(merged, p + "proj", s.width, s.width)});
    const std::string up = linear(norm(x, p + "ln_2"), p + "up", s.width, s.hidden);
    x = m.node("Add", {x, linear(m.node("Gelu", {up}, {{"approximate", "tanh"}}), p + "down", s.hidden, s.width)});
  }
  const std::string logits = m.node("MatMul", {norm(x, "ln_f"), m.weight("head.weight", {s.width, s.vocabulary})});
  m.node("SoftmaxCrossEntropyLoss",
         {m.node("Transpose", {logits}, {{"perm", std::vector<std::int64_t>{0, 2, 1}}}), "targets"}, {}, {"loss"});
  m.output("loss", f32, {});
  return m.bytes();
}

/// Small models that have a node of every kind between them, to start from.
inline std::vector<std::string> one_of_each() {
  std::vector<std::string> out;
  const auto chain = [&out](const std::vector<std::string>& ops, const std::vector<attribute>& with = {},
                            const std::vector<std::vector<std::int64_t>>& more = {}) {
    model_writer m;
    std::string x = m.node("Mul", {m.input("x", f32, {"batch", 4}), m.weight("w", {4})});
    for (const std::string& op : ops) {
      std::vector<std::string> in = {x};
      for (const std::vector<std::int64_t>& all : more)
        in.push_back(m.integers("c" + std::to_string(in.size()), {static_cast<std::int64_t>(all.size())}, all));
      x = m.node(op, in, with);
    }
    m.output(x, f32, {"batch", 4});
    out.push_back(m.bytes());
  };
  chain({"Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Gelu", "Softmax", "LogSoftmax", "Mystery"});
  chain({"ReduceMean", "ReduceMax", "ReduceSum"}, {{"axes", std::vector<std::int64_t>{-1}}});
  chain({"Reshape", "Expand"}, {}, {{2, 4}});
  chain({"Slice"}, {}, {{0}, {2}, {1}});
  chain({"Transpose", "Identity", "Dropout", "Flatten", "Squeeze"}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  chain({"Gather", "Unsqueeze"}, {{"axis", std::int64_t(1)}}, {{1}});
  chain({"Cast"}, {{"to", std::int64_t(7)}});
  model_writer m;
  m.input("x", f32, {2, 3, 6});
  const std::string y =
      m.node("Conv", {"x", m.weight("w", {4, 3, 2}), m.weight("b", {4})}, {{"pads", std::vector<std::int64_t>{1, 1}}});
  m.node("Split", {m.node("Concat", {y, y}, {{"axis", std::int64_t(1)}})}, {{"axis", std::int64_t(1)}},
         {"left", "right"});
  m.output(m.node("Einsum", {"left", "right"}, {{"equation", "abc,adc->abd"}}), f32, {});
  out.push_back(m.bytes());
  return out;
}

}  // namespace onnx_tests
