// A sharding: what every operation of a graph splits. What blocks decide and lowering follows.
#pragma once

#include <cfp/model/graph.hpp>

namespace cfp::inline v0_1 {

/// What a plan decides: what each operation splits, and in which partitions shared tensors are materialised.
struct sharding {
  std::vector<assignment> assigned;              ///< per operation
  std::vector<list<partition, 2>> materialised;  ///< per value; empty: converted as needed

  static constexpr sharding replicated(const graph& g) {
    return {std::vector<assignment>(g.operations.size()), std::vector<list<partition, 2>>(g.values.size())};
  }
};

}  // namespace cfp
