// The steps of a training, as their losses become known.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/session/callback.hpp>
#include <cfp/session/verified.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace cfp::inline v0_1 {

struct train_options {
  bool keep_changes = false;  ///< remembers what became of every weight
  /// After each step, by the first process; false: enough. Of devices that work by themselves (GPUs) up to two passes
  /// are then on their way already: a step is told of so much later, and those begun are trained, and told of.
  std::function<bool(const step_report&)> tell{};
};

/// What a training leaves.
struct trained {
  std::vector<double> loss{};
  std::vector<double> ms{};                   ///< from the loss before, without what `tell` took
  std::vector<int> weights{};                 ///< of the graph; what follows is one each, if it was asked for
  std::vector<std::vector<double>> change{};  ///< after training less before, in the order of the whole tensor
  std::vector<std::uint64_t> begun{};         ///< a hash of the numbers before
  /// How large the numbers are: the binary exponent of the larger of before and after.
  std::vector<std::vector<std::int8_t>> exponent{};
};

namespace detail {

// Kept, told of, and whether it is enough agreed on.
class heard_steps {
  using clock = std::chrono::steady_clock;

 public:
  /// `told` is of the first rank alone.
  heard_steps(rank& r, loaded_program& of, long first, const train_options& o, callback& told, trained& out)
      : rank_(r), of_(of), step_(first), options_(o), told_(told), out_(out) {}

  bool stop() const { return stop_; }

  /// What is known by now, on all ranks the same; `all`: of the steps begun.
  void hear(bool all) {
    bool told = false;
    while (const std::optional<double> loss = of_.ended(all)) {
      ++step_;
      const double ms = std::chrono::duration<double, std::milli>(clock::now() - since_).count();
      if (rank_.leads()) {
        out_.loss.push_back(*loss);
        out_.ms.push_back(ms);
      }
      if (options_.tell && rank_.number() == 0 && !told_.go_on(options_.tell, step_report{step_, *loss, ms}))
        stop_ = true;
      since_ = clock::now();
      told = true;
    }
    if (!options_.tell) return;
    rank_.agree(std::as_writable_bytes(std::span(&stop_, 1)));
    if (told) since_ = clock::now();
  }

 private:
  rank& rank_;
  loaded_program& of_;
  long step_;
  const train_options& options_;
  callback& told_;
  trained& out_;
  bool stop_ = false;
  clock::time_point since_ = clock::now();  // the last loss
};

}  // namespace detail

}  // namespace cfp
