// Operators of ONNX that multiply and add up, and those that see all of a row.
#pragma once

#include <cfp/graphs/onnx_call.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

namespace onnx {

// Numbers of dimensions: those of the result, and what is summed over behind them.
inline std::vector<int> counted(int from, std::size_t n) {
  std::vector<int> out(n);
  std::iota(out.begin(), out.end(), from);
  return out;
}

inline onnx_results matrix_product(const onnx_call& c) {
  const held &a = c.operand(0), &b = c.operand(1);
  if (a.shape.empty() || b.shape.empty()) throw bad_input("a number is no matrix");
  const bool row = a.shape.size() == 1, column = b.shape.size() == 1;
  const long sums = a.shape.back(), other = column ? b.shape.back() : b.shape[b.shape.size() - 2];
  if (sums != other)
    throw bad_input("its operands " + c.p.shapes_of(c.in) + " do not fit: " + std::to_string(sums) + " and " +
                    std::to_string(other) + " elements are multiplied");
  const std::size_t lead = std::max(row ? 0 : a.shape.size() - 2, column ? 0 : b.shape.size() - 2);
  const int m = static_cast<int>(lead), k = m + 1, n = m + 2;
  std::vector<int> left =
      row ? std::vector<int>{} : counted(static_cast<int>(lead - (a.shape.size() - 2)), a.shape.size() - 2);
  std::vector<int> right =
      column ? std::vector<int>{} : counted(static_cast<int>(lead - (b.shape.size() - 2)), b.shape.size() - 2);
  std::vector<int> out = counted(0, lead);
  if (!row) left.push_back(m), out.push_back(m);
  left.push_back(k), right.push_back(k);
  if (!column) right.push_back(n), out.push_back(n);
  return {c.p.einsum(a, left, b, right, out)};
}

inline onnx_results general_product(const onnx_call& c) {
  const held &a = c.operand(0), &b = c.operand(1);
  if (a.shape.size() != 2 || b.shape.size() != 2)
    throw bad_input("operands must be matrices, are " + c.p.shapes_of(c.in));
  const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
  const held all = c.p.einsum(a, ta ? std::vector<int>{2, 0} : std::vector<int>{0, 2}, b,
                              tb ? std::vector<int>{1, 2} : std::vector<int>{2, 1}, {0, 1});
  const held product = c.p.scaled_by(all, c.real("alpha", 1));
  if (!c.has(2)) return {product};
  return {c.p.elementwise(info<add_t>, {product, c.p.scaled_by(c.operand(2), c.real("beta", 1))})};
}

/// "bij,bjk->bik" of two operands.
inline onnx_results einstein(const onnx_call& c) {
  std::string text = c.text("equation", "");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (c.in.size() != 2 || comma == std::string::npos || arrow == std::string::npos || arrow < comma ||
      text.find('.') != std::string::npos)
    return {};
  const auto numbers = [](const std::string& letters) {
    std::vector<int> out;
    for (const char l : letters) out.push_back(l);
    return out;
  };
  const std::vector<int> left = numbers(text.substr(0, comma)),
                         right = numbers(text.substr(comma + 1, arrow - comma - 1)),
                         out = numbers(text.substr(arrow + 2));
  for (const auto* all : {&left, &right, &out})
    for (std::size_t i = 0; i < all->size(); ++i)
      if (std::count(all->begin(), all->end(), (*all)[i]) > 1) return {};  // a diagonal
  if (left.size() != c.operand(0).shape.size() || right.size() != c.operand(1).shape.size())
    throw bad_input("equation '" + text + "' does not fit its operands " + c.p.shapes_of(c.in));
  return {c.p.einsum(c.operand(0), left, c.operand(1), right, out)};
}

/// One side of a window: "same" is not computed here, the file must say it by its pads.
inline long windows(long size, long kernel, long stride, long dilation, long pads) {
  const bool is = kernel >= 1 && dilation >= 1 && stride >= 1 && pads >= 0 && kernel <= (1l << 40) / dilation;
  const long reach = is ? dilation * (kernel - 1) + 1 : 0;
  if (!is || size + pads < reach)
    throw bad_input("a window of " + std::to_string(kernel) + " does not fit " + std::to_string(size) + " elements");
  return (size + pads - reach) / stride + 1;
}

/// What is put before and behind, if it can be.
inline long sides(long before, long behind) {
  constexpr long most = 1l << 40;
  return before < 0 || behind < 0 || before > most || behind > most ? -1 : before + behind;
}

/// An attribute of so many numbers.
inline std::vector<long> numbers_for(const onnx_call& c, const char* name, std::size_t n, long otherwise) {
  std::vector<long> all = c.integers(name);
  if (!all.empty() && all.size() != n)
    throw bad_input(std::string("attribute '") + name + "' has " + std::to_string(all.size()) + " numbers, not " +
                    std::to_string(n));
  all.resize(n, otherwise);
  return all;
}

/// Batch and channels are split, positions and windows stay whole.
inline onnx_results convolution(const onnx_call& c) {
  const held &x = c.operand(0), &w = c.operand(1);
  const std::size_t rank = x.shape.size(), spatial = rank - 2;
  if (rank < 3 || w.shape.size() != rank) throw bad_input("operands do not fit: " + c.p.shapes_of(c.in));
  if (c.text("auto_pad", "NOTSET") != "NOTSET") return {};
  const long group = c.integer("group", 1);
  if (group < 1 || x.shape[1] % group != 0 || w.shape[1] != x.shape[1] / group || w.shape[0] % group != 0)
    throw bad_input("attribute 'group' is " + std::to_string(group) + ", its operands are " + c.p.shapes_of(c.in));
  const std::vector<long> strides = numbers_for(c, "strides", spatial, 1),
                          dilations = numbers_for(c, "dilations", spatial, 1),
                          pads = numbers_for(c, "pads", 2 * spatial, 0);
  std::vector<long> shape = {x.shape[0], w.shape[0]};
  const int s = static_cast<int>(spatial);
  std::vector<int> of_x = {0, 1}, of_w = {2, group == 1 ? 1 : 3 * s + 3}, of_y = {0, 2}, whole;
  for (int d = 0; d < s; ++d) {
    const auto at = static_cast<std::size_t>(d);
    shape.push_back(
        windows(x.shape[at + 2], w.shape[at + 2], strides[at], dilations[at], sides(pads[at], pads[at + spatial])));
    of_x.push_back(3 + d), of_w.push_back(3 + s + d), of_y.push_back(3 + 2 * s + d);
    whole.insert(whole.end(), {3 + d, 3 + s + d, 3 + 2 * s + d});
  }
  if (group > 1) whole.insert(whole.end(), {1, 2, 3 * s + 3});
  held y = some_of(c.p.build, c.node.op, c.attributes(), {x, w}, {shape}, {of_x, of_w, of_y}, whole).front();
  if (!c.has(2)) return {y};
  std::vector<long> channels(rank, 1);
  channels[1] = w.shape[0];
  return {c.p.elementwise(info<add_t>, {y, c.p.reshaped(c.operand(2), channels)})};
}

/// Batch and channels are split, positions stay whole.
inline onnx_results pooled(const onnx_call& c) {
  const held& x = c.operand(0);
  const std::size_t rank = x.shape.size(), spatial = rank < 3 ? 0 : rank - 2;
  const std::vector<long> kernel = c.integers("kernel_shape");
  if (kernel.size() != spatial || spatial == 0 || c.text("auto_pad", "NOTSET") != "NOTSET" ||
      c.integer("ceil_mode", 0) != 0 || c.node.outputs.size() > 1)
    return {};
  const std::vector<long> strides = numbers_for(c, "strides", spatial, 1),
                          pads = numbers_for(c, "pads", 2 * spatial, 0),
                          dilations = numbers_for(c, "dilations", spatial, 1);
  std::vector<long> shape = {x.shape[0], x.shape[1]};
  std::vector<int> of_x = {0, 1}, of_y = {0, 1}, whole;
  for (std::size_t d = 0; d < spatial; ++d) {
    shape.push_back(windows(x.shape[d + 2], kernel[d], strides[d], dilations[d], sides(pads[d], pads[d + spatial])));
    of_x.push_back(2 + static_cast<int>(d)), of_y.push_back(static_cast<int>(rank + d));
    whole.insert(whole.end(), {of_x.back(), of_y.back()});
  }
  return some_of(c.p.build, c.node.op, c.attributes(), {x}, {shape}, {of_x, of_y}, whole);
}

/// By what a training found: a scale, a shift, a mean and a variance of each channel.
inline onnx_results batch_normalised(const onnx_call& c) {
  std::vector<held> in = {c.operand(0)};
  std::vector<long> channels(in[0].shape.size(), 1);
  if (channels.size() < 2 || c.node.outputs.size() > 1) return {};
  channels[1] = in[0].shape[1];
  for (std::size_t i = 1; i < 5; ++i) in.push_back(c.p.reshaped(c.operand(i), channels));
  return element_by_element(c.p.build, c.node.op, c.attributes(), in, in[0].shape, false);
}

inline onnx_results reduced(const onnx_call& c) {
  const held& x = c.operand(0);
  axes over;
  const bool given = c.axes_of(1, x.shape.size(), over), keep = c.integer("keepdims", 1) != 0;
  if (!given || over.empty()) {
    if (c.integer("noop_with_empty_axes", 0) != 0) return {x};
    over.resize(x.shape.size());
    std::iota(over.begin(), over.end(), std::size_t(0));
  }
  const std::string& op = c.node.op;
  using namespace elementary;
  if (op == "ReduceSum") {
    held out = c.p.sum(x, over, keep);
    out.is_whole = x.is_whole;
    return {out};
  }
  if (x.is_whole) return {};
  if (op == "ReduceMean") return {c.p.mean(x, over, keep)};
  if (op == "ReduceMax" || op == "ReduceMin") return {c.p.extreme(x, over, keep, op == "ReduceMax")};
  if (op == "ReduceSumSquare") return {c.p.sum(c.p.elementwise(info<square_t>, {x}), over, keep)};
  if (op == "ReduceL2")
    return {c.p.elementwise(info<root_t>, {c.p.sum(c.p.elementwise(info<square_t>, {x}), over, keep)})};
  return {};
}

inline onnx_results global_mean(const onnx_call& c) {
  const held& x = c.operand(0);
  axes over;
  for (std::size_t d = 2; d < x.shape.size(); ++d) over.push_back(d);
  return {c.p.mean(x, over, true)};
}

/// Before version 13 all from an axis on was one row.
inline onnx_results softmax_rows(const onnx_call& c) {
  const held& x = c.operand(0);
  const bool flat = c.opset < 13;
  const std::size_t axis = axis_of(c.integer("axis", flat ? 1 : -1), x.shape.size());
  if (flat && axis + 1 != x.shape.size()) return {};
  return {c.node.op == "Softmax" ? c.p.softmax_along(x, axis) : c.p.log_softmax_along(x, axis)};
}

inline onnx_results normalised(const onnx_call& c) {
  const held &x = c.operand(0), &weight = c.operand(1);
  const bool is_layer = c.node.op == "LayerNormalization";
  if (x.shape.empty() || x.shape.back() == 1 || axis_of(c.integer("axis", -1), x.shape.size()) + 1 != x.shape.size() ||
      without_ones(weight.shape) != std::vector<long>{x.shape.back()})
    return {};
  const double epsilon = c.real("epsilon", 1e-5);
  if (!is_layer) return {c.p.rms_normalised(x, weight, epsilon)};
  if (c.has(2) && without_ones(c.operand(2).shape) != std::vector<long>{x.shape.back()}) return {};
  return {c.p.layer_normalised(x, weight, c.has(2) ? &c.in[2] : nullptr, epsilon)};
}

inline onnx_results cross_entropy_loss(const onnx_call& c) {
  const held &x = c.operand(0), &targets = c.operand(1);
  const std::string how = c.text("reduction", "mean");
  held out;
  if (c.has(2) || how == "none" || c.integer("ignore_index", -100) >= 0 || c.node.outputs.size() > 1) return {};
  if (x.shape.size() < 2 || targets.shape.size() + 1 != x.shape.size())
    throw bad_input("operands do not fit: " + c.p.shapes_of(c.in));
  if (!c.p.cross_entropy_along(x, 1, targets, how == "mean", out)) return {};
  return {out};
}

}  // namespace onnx

}  // namespace cfp::graphs
