// Where a public checkpoint has a weight of a graph: by which names, and how its numbers lie there.
#pragma once

#include <cfp/model/graph.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct stored_weight {
  std::vector<std::string> tensors;         ///< one; or one for each of the weight's first dimension
  std::vector<long> shape;                  ///< of each
  long first = 0;                           ///< the number of a tensor that the weight begins with
  std::vector<std::pair<long, long>> walk;  ///< sizes and strides, as the weight (of a tensor) goes over it, row-major

  /// As the graph has it.
  static stored_weight plain(const std::string& called, const std::vector<long>& shape) {
    long all = 1;
    for (const long n : shape) all *= n;
    return {{called}, shape, 0, {{all, 1}}};
  }
};

/// The shape of a tensor as its model was written: dimensions that were split are joined again.
inline std::vector<long> written_shape(const value& v) {
  std::vector<long> out;
  for (int d = 0; d < v.rank(); ++d)
    if (d > 0 && v.group[d] == v.group[d - 1]) out.back() *= v.shape[d];
    else out.push_back(v.shape[d]);
  return out;
}

/// Of what a graph calls a weight, and its written shape.
using weight_layout = std::function<stored_weight(const std::string& label, const std::vector<long>& shape)>;

}  // namespace cfp
