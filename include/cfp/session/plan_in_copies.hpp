// A copy of the model in each of several pools, each trained on as much of a step as it is fast.
//
//   std::cout << *cfp::plan_in_copies(my_model, 256, {{a100s, h100s}, links});
#pragma once

#include <cfp/profile/machine/machine_pools.hpp>
#include <cfp/session/plan_for.hpp>

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// Each pool's plan computes gradients of its micro-batches; their sum, weighted by how many these are, goes between
/// all pools, and each updates its own weights.
struct copies_plan {
  std::string machine{};               ///< of all pools
  long rows = 0;                       ///< of a micro-batch
  int micro_batches = 0;               ///< of a step, of all copies
  std::vector<machine_plan> copies{};  ///< of each pool; its micro-batches are its share
  double gradients_ms = 0;             ///< of a step: gradients between pools, after all are made
  double ms = 0;                       ///< of a step
  double bytes_between = 0;            ///< of gradients, of all ranks of a pool

  double copy_ms(std::size_t pool) const { return copies[pool].meshes.front().fastest()->ms; }
  std::string json() const;
  /// A file for each pool: "plan.json" is written as "plan-1.json", "plan-2.json". Throws bad_input.
  void save_plan(const std::string& path) const;
  void save_header(const std::string& path) const;
};
std::ostream& operator<<(std::ostream&, const copies_plan&);

/// The fastest of 2, 4, 8, ... micro-batches (`o.micro_batches` of 0 or 1), or of the number given, and of all shares
/// of them: none is left out but by what its devices take at least (`least_step_ms`), and where fewer keep all and more
/// would only cut work into smaller pieces. Nothing if none fits, or none is faster than `o.within`; weights and their
/// state that only hosts have the memory for are no copy. Throws bad_input as `plan_for` does, and for fewer than two
/// pools.
std::optional<copies_plan> plan_in_copies(const forward_of_rows& model, long rows, const machine_pools& m,
                                          const machine_plan_options& o = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/plan_in_copies_implementation.hpp>
#endif
