// What communicators share, whatever carries their bytes: the call that members must agree on, how their data are
// combined, what is counted, and the errors of ranks.
#pragma once
#include <cfp/communicator/collective_call.hpp>
#include <cfp/communicator/fold.hpp>
#include <cfp/communicator/rank_context.hpp>
#include <cfp/communicator/rank_failure.hpp>
#include <cfp/communicator/rank_grid.hpp>
#include <cfp/communicator/traffic.hpp>
#include <cfp/core/long_error.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace cfp::inline v0_1 {

/// What collectives can move; the reducing ones need numbers.
template <class T>
concept movable_element = std::is_trivially_copyable_v<T>;
template <class T>
concept reducible_element = std::is_arithmetic_v<T> || is_narrow<T>;

/// Thrown by a collective that cannot take place, on every rank that calls it.
struct communicator_error : long_error {
  using long_error::long_error;
};

namespace detail {

inline std::string milliseconds(std::chrono::nanoseconds t) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(t).count()) + " ms";
}

/// Fails a rank, and throws, if the root of its broadcast is none of the group's `size` ranks.
template <class World>
void check_root(World& world, int rank, int root, int size) {
  if (root >= 0 && root < size) return;
  const std::string message = "the root of a broadcast is a rank of the group, less than " + std::to_string(size) +
                              ", got: " + std::to_string(root);
  world.fail(rank, message);
  throw communicator_error(message);
}

}  // namespace detail

}  // namespace cfp
