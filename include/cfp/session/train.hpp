// Training under a lowered program, on any backend.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/checkpoint.hpp>
#include <cfp/backend/state_file.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/program/stages/lower_stages.hpp>
#include <cfp/session/first_process.hpp>
#include <cfp/session/heard_steps.hpp>
#include <cfp/session/shared_batches.hpp>
#include <cfp/session/weight_changes.hpp>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

/// A program in training: loaded once, its state kept from one run to the next.
class trainer {
 public:
  /// The programs are what the backend wants, lowered from `g`; all outlive this. `seed`: of the initial weights.
  /// Throws bad_input for programs of another mesh than the ranks'.
  trainer(backend& on, rank_programs p, const graph& g, std::uint64_t seed)
      : on_(on), programs_(p), g_(p.graph_of(g)), seed_(seed) {
    check_mesh(p.of(0), on.mesh());
  }
  trainer(const trainer&) = delete;
  ~trainer() { unload(); }

  /// Whether ranks have failed: what was trained is no more.
  bool lost() const { return lost_; }

  /// Begins with a saved state, or weights: each rank reads its pieces. Throws bad_input, in every process, if one of
  /// them is no finite number: then nothing is trained.
  void resume(const training_start& from) {
    std::vector<double> wrong{no_value};
    on_all([&](rank& r) {
      loaded_program& mine = loaded(r);
      for (const auto& [value, whole] : from.tensors) mine.give(value, whole);
      std::vector<double> first{no_value};
      r.barrier();
      for (const auto& [value, whole] : from.tensors)
        if (const auto* of = std::get_if<stored_numbers>(&whole); of && of->not_finite() != stored_numbers::none)
          first[0] = std::min(first[0], static_cast<double>(value));
      r.combine(std::span(first), reduction::min);
      if (r.leads()) wrong = first;
    });
    if (wrong[0] < no_value)
      throw bad_input((from.path.empty() ? "" : from.path + ": ") + "weight '" +
                      std::string(g_[static_cast<int>(wrong[0])].label.view()) +
                      "' has numbers that are not finite in float32: take another checkpoint");
    done_ = from.step;
  }

  /// Steps that were trained, those of a state it went on from included.
  long done() const { return done_; }

  /// Trains so many steps more. Throws bad_input for data that do not fit, `cancelled`, and what `tell` threw (in the
  /// process that calls it; in the others `cancelled`): the steps before are kept. Throws what `backend::run` does:
  /// then nothing is.
  trained run(const batch_source& data, long steps, const train_options& o = {}) {
    trained out;
    detail::weight_changes weights(g_, out);
    shared_batches batches(g_, data);
    const long first = done_, last = done_ + steps;
    bool enough = false, apart = false;
    detail::callback told;
    const auto steps_on = [&](rank& r) {
      loaded_program& mine = loaded(r);
      if (o.keep_changes) weights.before(r, mine);
      detail::heard_steps heard(r, mine, first, o, told, out);
      bool fitted = true;
      long s = first + 1;
      try {
        for (; s <= last && !heard.stop(); ++s) {
          mine.run_ahead(s, g_.passes, [&](int pass) { batches.feed(mine, s * g_.passes + pass); });
          heard.hear(false);
        }
      } catch (const shared_batches::ended&) {  // all ranks come to it
        fitted = false;
      }
      heard.hear(true);
      double begun[] = {static_cast<double>(s), -static_cast<double>(s)};
      r.combine(std::span(begun), reduction::min);
      if (r.leads()) apart = begun[0] != -begun[1];
      if (begun[0] != -begun[1])
        throw bad_input("processes have data for different steps, some to step " + last_of(begun[0]) +
                        ", others to step " + last_of(-begun[1]) +
                        ": the source of batches must give the same in all of them");
      if (o.keep_changes && fitted) weights.after(r, mine);
      if (r.leads()) enough = heard.stop();
    };
    try {
      on_all(steps_on);
    } catch (const rank_failure&) {  // of several processes perhaps one alone had such data
      if (!apart) batches.rethrow();
      throw;
    }
    done_ += static_cast<long>(out.loss.size());
    told.rethrow();
    batches.rethrow();
    if (enough) throw cancelled();
    return out;
  }

  /// Writes weights and optimizer state as they are now. Throws bad_input, in every process, if the file cannot be
  /// written: training can then go on.
  void save(const std::string& path) {
    std::optional<state_file<float>> to;
    in_first_process(on_, [&] { to.emplace(state_file<float>::create(path, g_, done_)); });
    collect(
        state_file<float>::is_state, [&](int v) { return to ? to->data(v) : nullptr; },
        [](int, std::span<const float>) {});
    in_first_process(on_, [&] { to->commit(); });
  }

  /// Writes weights alone, as a public checkpoint has them. Throws as `save` does.
  void save_weights(const std::string& path, const weight_layout& layout, const checkpoint* like) {
    std::optional<new_checkpoint> to;
    in_first_process(on_, [&] { to.emplace(path, g_, layout, like); });
    collect(
        detail::is_weight, [](int) { return static_cast<float*>(nullptr); },
        [&](int v, std::span<const float> whole) {
          if (!to) return;
          const stored_numbers& out = to->weights().at(v);
          for (std::size_t i = 0; i < whole.size(); ++i) out.set(i, static_cast<double>(whole[i]));
        });
    in_first_process(on_, [&] { to->commit(); });
  }

 private:
  static constexpr double no_value = 1e300;

  static std::string last_of(double begun) { return std::to_string(static_cast<long>(begun) - 1); }

  // Whole tensors, one behind the other, in every process: at `place(value)`, or in memory of their own where that is
  // none; `take(value, numbers)` has each.
  template <class Is, class Place, class Take>
  void collect(const Is& is, const Place& place, const Take& take) {
    std::vector<float> mine;
    on_all([&](rank& r) {
      const loaded_program& program = loaded(r);
      for (int v = 0; v < g_.value_count(); ++v) {
        if (!is(g_[v])) continue;
        const auto n = static_cast<std::size_t>(elements(g_[v].shape));
        float* const there = place(v);
        if (there == nullptr && r.leads()) mine.assign(n, 0);
        r.barrier();
        const std::span<float> whole(there != nullptr ? there : mine.data(), n);
        program.collect(v, whole);
        r.complete(whole);
        r.barrier();
        if (r.leads()) take(v, whole);
        r.barrier();
      }
    });
  }

  loaded_program& loaded(rank& r) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = kept_.find(r.number()); at != kept_.end()) return *at->second;
    }
    std::unique_ptr<loaded_program> made = r.load(programs_.of(r.number()), g_, seed_);
    const std::lock_guard lock(mutex_);
    return *(kept_[r.number()] = std::move(made));
  }

  // If a rank fails all lose their programs, where they were loaded.
  void on_all(const std::function<void(rank&)>& job) {
    try {
      on_.run([&](rank& r) {
        try {
          job(r);
          r.barrier();
        } catch (...) {
          drop(r.number());
          throw;
        }
      });
    } catch (const rank_failure&) {
      kept_.clear();
      done_ = 0;
      lost_ = true;
      throw;
    }
  }
  void drop(int number) {
    std::unique_ptr<loaded_program> mine;
    const std::lock_guard lock(mutex_);
    if (const auto at = kept_.find(number); at != kept_.end()) mine = std::move(at->second);
    kept_.erase(number);
  }

  // Programs end where they were loaded.
  void unload() noexcept {
    try {
      on_.run([&](rank& r) { drop(r.number()); });
    } catch (const std::exception&) {  // the ranks have failed for good
    }
    kept_.clear();
  }

  backend& on_;
  const rank_programs programs_;
  const graph& g_;
  const std::uint64_t seed_;
  long done_ = 0;
  bool lost_ = false;
  std::mutex mutex_;                                     // of what is kept
  std::map<int, std::unique_ptr<loaded_program>> kept_;  // by rank, of this process
};

/// Trains from the beginning, or from what is given.
inline trained train(backend& on, rank_programs p, const graph& g, const batch_source& data, long steps,
                     std::uint64_t seed, const train_options& o = {}, const training_start* from = nullptr) {
  trainer t(on, p, g, seed);
  if (from != nullptr) t.resume(*from);
  return t.run(data, steps, o);
}
/// The same of the stages of a pipeline, on ranks of a mesh whose first axis they lie along.
inline trained train(backend& on, const stage_programs& p, const batch_source& data, long steps, std::uint64_t seed,
                     const train_options& o = {}) {
  return trainer(on, p, p.g, seed).run(data, steps, o);
}

}  // namespace cfp
