// The operators of ONNX that are known, by name.
#pragma once

#include <cfp/graphs/onnx_elements.hpp>
#include <cfp/graphs/onnx_folding.hpp>
#include <cfp/graphs/onnx_products.hpp>
#include <cfp/graphs/onnx_shapes.hpp>

#include <map>
#include <string_view>

namespace cfp::inline v0_1::graphs {

namespace onnx {

using translate = onnx_results (*)(const onnx_call&);

inline const std::map<std::string_view, translate> operators = {
    {"Add", &add},
    {"Sub", &subtract},
    {"Mul", &multiply},
    {"Div", &divide},
    {"Pow", &power},
    {"Neg", [](const onnx_call& c) -> onnx_results { return {c.p.scaled_by(c.operand(0), -1)}; }},
    {"Reciprocal",
     [](const onnx_call& c) -> onnx_results {
       return {c.p.elementwise(info<elementary::over_t>, {c.operand(0)}, {1})};
     }},
    {"Max", [](const onnx_call& c) { return extreme(c, info<elementary::larger_t>); }},
    {"Min", [](const onnx_call& c) { return extreme(c, info<elementary::smaller_t>); }},
    {"Sum", &added_up},
    {"Mean", &added_up},
    {"Where", &chosen},
    {"Gelu", &gaussian},
    {"Identity", &same},
    {"Dropout", &same},
    {"Cast", &cast},
    {"CastLike", &same},
    {"Transpose", &transposed},
    {"Reshape", &reshaped},
    {"Flatten", &flattened},
    {"Squeeze", &squeezed},
    {"Unsqueeze", &unsqueezed},
    {"Expand", &expanded},
    {"Concat", &joined},
    {"Split", &split},
    {"Slice", &sliced},
    {"Gather", &gathered},
    {"MatMul", &matrix_product},
    {"Gemm", &general_product},
    {"Einsum", &einstein},
    {"Conv", &convolution},
    {"ReduceSum", &reduced},
    {"ReduceMean", &reduced},
    {"ReduceMax", &reduced},
    {"ReduceMin", &reduced},
    {"ReduceL2", &reduced},
    {"ReduceSumSquare", &reduced},
    {"GlobalAveragePool", &global_mean},
    {"MaxPool", &pooled},
    {"AveragePool", &pooled},
    {"BatchNormalization", &batch_normalised},
    {"Softmax", &softmax_rows},
    {"LogSoftmax", &softmax_rows},
    {"LayerNormalization", &normalised},
    {"RMSNormalization", &normalised},
    {"SimplifiedLayerNormalization", &normalised},
    {"SoftmaxCrossEntropyLoss", &cross_entropy_loss}};

/// What a node computes; nothing where nobody here knows it.
inline onnx_results translated(const onnx_call& c) {
  const std::string_view op = c.node.op;
  if (functions().count(op) > 0) return function(c);
  if (is_pointwise(op)) return pointwise(c);
  if (is_comparison(op)) return pointwise(c, true);
  const auto at = operators.find(op);
  return at == operators.end() ? onnx_results{} : at->second(c);
}

}  // namespace onnx

}  // namespace cfp::graphs
