// A process as one rank of a mesh, whatever connects it to the others.
#pragma once

#include <cfp/communicator/rank_context.hpp>
#include <cfp/communicator/rank_failure.hpp>

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Runs one job after another; all processes do the same.
template <class World, class Communicator>
class one_rank_pool {
 public:
  using context = rank_context_of<World, Communicator>;

  int size() const { return world_.size(); }
  int rank() const { return world_.rank(); }
  bool is_first() const { return rank() == 0; }
  const std::vector<int>& mesh() const { return world_.mesh(); }
  int on_this_machine() const { return world_.on_this_machine(); }  ///< ranks

  /// How long a rank waits for others before it fails: 10 minutes unless set.
  void set_deadline(std::chrono::nanoseconds limit) { world_.set_deadline(limit); }

  /// Calls f(context&) here, as every process does, and returns when all have ended. Throws rank_failure on all of them
  /// if any has failed; the pool can then not be used again.
  template <class F>
  void run(F&& f) {
    context_.reset_counted();
    context_.world.reset_counted();
    try {
      f(context_);
      world_.leave();
    } catch (const std::exception& e) {
      world_.fail(rank(), e.what());
    } catch (...) {
      world_.fail(rank(), "an exception that is no std::exception");
    }
    if (!world_.end()) throw rank_failure(world_.errors());
  }

 protected:
  template <class... Arguments>
  explicit one_rank_pool(std::vector<int> mesh, Arguments&&... how)
      : world_(std::move(mesh), std::forward<Arguments>(how)...), context_(world_, world_.rank()) {}

 private:
  World world_;
  context context_;
};

}  // namespace cfp
