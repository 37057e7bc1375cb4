// Two pipelines in opposite directions (Chimera, arXiv 2107.06925): each rank does what it can begin first.
#pragma once

#include <cfp/pipeline/simulate_pipeline.hpp>

#include <optional>
#include <tuple>

namespace cfp::inline v0_1 {

namespace detail {

class chimera_schedule {
 public:
  chimera_schedule(int stages, int micro_batches, const stage_cost& cost)
      : stages_(stages), micro_batches_(micro_batches), cost_(cost), done_(at(stages) * at(micro_batches)),
        free_(at(stages)), kept_(at(stages)), next_(2 * at(stages)), ranks_(at(stages)) {}

  pipeline_schedule run() {
    for (std::size_t i = 1; i < next_.size(); i += 2) next_[i] = {1, 1};
    while (const std::optional<choice> c = next()) take(*c);
    for (int r = 0; r < stages_; ++r)
      for (const int s : {r, stages_ - 1 - r}) ranks_[at(r)].push_back({slot::update, s, micro_batches_ - 1});
    return {"chimera", stages_, micro_batches_, std::move(ranks_), micro_batches_};
  }

 private:
  struct progress {
    double forward = unknown, backward = unknown;  // when they end
  };
  struct choice {
    double begin;
    slot what;
    // Of what begins at one time backward before forward, the earlier micro-batch, the deeper stage.
    auto order() const { return std::tuple(begin, what.kind == slot::forward, what.micro_batch, -what.stage); }
  };
  struct position {
    int forward = 0, backward = 0;  // micro-batches
  };
  static constexpr double unknown = -1;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int rank_of(int stage, int m) const { return m % 2 == 0 ? stage : stages_ - 1 - stage; }
  position& next_of(int stage, int way) { return next_[2 * at(stage) + at(way)]; }
  progress& of(int stage, int m) { return done_[at(stage) * at(micro_batches_) + at(m)]; }

  std::optional<choice> next() {
    std::optional<choice> best;
    for (int s = 0; s < stages_; ++s)
      for (const int way : {0, 1})
        for (const int m : {next_of(s, way).forward, next_of(s, way).backward})  // those of one way come in order
          if (m < micro_batches_)
            if (const std::optional<choice> c = of_stage(s, m); c && (!best || c->order() < best->order())) best = c;
    return best;
  }
  // What a stage can do next with a micro-batch. Two neighbours are never on one rank for the same one.
  std::optional<choice> of_stage(int s, int m) {
    const progress& now = of(s, m);
    const auto r = at(rank_of(s, m));
    const auto after = [&](slot::kind_t kind, double ready) {
      return std::optional(choice{std::max(free_[r], ready), {kind, s, m}});
    };
    if (now.backward != unknown) return std::nullopt;
    if (now.forward == unknown) {
      if (kept_[r] >= stages_) return std::nullopt;  // more than that needs no rank
      if (s == 0) return after(slot::forward, 0);
      const double before = of(s - 1, m).forward;
      return before == unknown ? std::nullopt : after(slot::forward, before + cost_.send_forward);
    }
    if (s + 1 == stages_) return after(slot::backward, now.forward);
    const double behind = of(s + 1, m).backward;
    return behind == unknown ? std::nullopt : after(slot::backward, behind + cost_.send_backward);
  }
  void take(const choice& c) {
    const auto r = at(rank_of(c.what.stage, c.what.micro_batch));
    const bool forward = c.what.kind == slot::forward;
    progress& now = of(c.what.stage, c.what.micro_batch);
    (forward ? now.forward : now.backward) = free_[r] = c.begin + cost_.of(c.what.kind);
    kept_[r] += forward ? 1 : -1;
    (forward ? next_of(c.what.stage, c.what.micro_batch % 2).forward
             : next_of(c.what.stage, c.what.micro_batch % 2).backward) += 2;
    ranks_[r].push_back(c.what);
  }

  int stages_, micro_batches_;
  const stage_cost& cost_;
  std::vector<progress> done_;
  std::vector<double> free_;
  std::vector<int> kept_;       // micro-batches that are under way
  std::vector<position> next_;  // by stage and way
  std::vector<std::vector<slot>> ranks_;
};

}  // namespace detail

/// Half of the micro-batches go through the stages from the first rank to the last, half from the last to the first:
/// every rank holds two stages. Stages and micro-batches are even (bad_input). `cost`: of each stage, what the order is
/// made for.
inline pipeline_schedule chimera(int stages, int micro_batches, const stage_cost& cost = {}) {
  if (stages < 2 || micro_batches < 2 || stages % 2 != 0 || micro_batches % 2 != 0)
    throw bad_input("schedule chimera of " + std::to_string(stages) + " stages and " + std::to_string(micro_batches) +
                    " micro-batches: both must be even, for half go each way");
  if (static_cast<long>(stages) * micro_batches > most_slots)
    throw bad_input("schedule chimera of " + std::to_string(stages) + " stages and " + std::to_string(micro_batches) +
                    " micro-batches: the product of these is at most " + std::to_string(most_slots));
  return detail::chimera_schedule(stages, micro_batches, cost).run();
}

}  // namespace cfp
