// What each rank of a pipeline does, in order: data, whoever made it.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Stages times micro-batches of a schedule that a function of this folder makes, at most.
inline constexpr long most_slots = 1 << 22;

/// Something a rank does with a stage.
struct slot {
  enum kind_t : std::uint8_t {
    forward,           ///< of a micro-batch
    backward,          ///< all of it
    backward_inputs,   ///< what the stage before waits for
    backward_weights,  ///< the rest of backward
    update,            ///< of the stage's weights, with all gradients since the last one
  } kind = forward;
  int stage = 0;
  int micro_batch = 0;  ///< of an update: the last one that it counts

  friend bool operator==(const slot&, const slot&) = default;
};

/// "forward of micro-batch 3 by stage 1"
inline std::string describe(const slot& s) {
  static constexpr const char* kinds[] = {"forward", "backward", "backward for inputs", "backward for weights",
                                          "update"};
  const std::string by = " by stage " + std::to_string(s.stage);
  if (s.kind == slot::update) return kinds[s.kind] + by + " after micro-batch " + std::to_string(s.micro_batch);
  return kinds[s.kind] + std::string(" of micro-batch ") + std::to_string(s.micro_batch) + by;
}

/// Which version of its weights a stage computes with.
enum class weights_read : std::uint8_t {
  stashed,  ///< forward the newest there is, backward the same again
  delayed,  ///< the one before those the batch of a micro-batch would begin with: no more than two are there
  newest,   ///< whatever is there: backward may see another one than forward did
};

struct pipeline_schedule {
  std::string name;
  int stages = 0;
  int micro_batches = 0;
  std::vector<std::vector<slot>> ranks;  ///< what each does, in order
  int batch = 0;  ///< micro-batches that a step has; less than all where steps follow one another without a break
  weights_read reads = weights_read::stashed;
  int slices = 1;  ///< of each micro-batch: stage s, slice k is stage s * slices + k here, all of s on one rank

  /// The stage that forward of one waits for, or that waits for it; none: below 0, `stages` or above.
  int before(int stage) const { return stage - slices; }
  int after(int stage) const { return stage + slices; }
  int count() const { return static_cast<int>(ranks.size()); }
};

namespace detail {

// Where a schedule has each forward and backward of a stage and a micro-batch.
class slot_places {
 public:
  struct place {
    int rank = -1, at = -1;
    explicit operator bool() const { return rank >= 0; }
  };

  /// Throws bad_input where a schedule has something twice, or what it cannot have.
  explicit slot_places(const pipeline_schedule& s) : schedule_(s) {
    if (s.stages < 1 || s.micro_batches < 1 || s.ranks.empty())
      throw bad_input("schedule " + s.name + " has " + std::to_string(s.stages) + " stages, " +
                      std::to_string(s.micro_batches) + " micro-batches and " + std::to_string(s.count()) +
                      " ranks: it needs one of each at least");
    const long needed = 2l * s.stages * s.micro_batches;
    long slots = 0;
    for (const std::vector<slot>& mine : s.ranks) slots += static_cast<long>(mine.size());
    if (slots < needed)
      throw bad_input("schedule " + s.name + " has " + std::to_string(slots) + " slots: a forward and a backward of " +
                      std::to_string(s.stages) + " stages and " + std::to_string(s.micro_batches) +
                      " micro-batches are " + std::to_string(needed));
    places_.resize(kinds * static_cast<std::size_t>(s.stages) * static_cast<std::size_t>(s.micro_batches));
    for (int r = 0; r < s.count(); ++r)
      for (std::size_t i = 0; i < s.ranks[static_cast<std::size_t>(r)].size(); ++i) put(r, static_cast<int>(i));
  }

  place of(slot::kind_t kind, int stage, int micro_batch) const { return places_[index(kind, stage, micro_batch)]; }
  /// What the stage before waits for.
  place of_inputs(int stage, int micro_batch) const {
    const place whole = of(slot::backward, stage, micro_batch);
    return whole ? whole : of(slot::backward_inputs, stage, micro_batch);
  }

 private:
  static constexpr std::size_t kinds = 4;  // an update is by stage

  std::size_t index(slot::kind_t kind, int stage, int micro_batch) const {
    return (static_cast<std::size_t>(kind) * static_cast<std::size_t>(schedule_.stages) +
            static_cast<std::size_t>(stage)) *
               static_cast<std::size_t>(schedule_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }
  void put(int rank, int at) {
    const slot& s = schedule_.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(at)];
    if (s.stage < 0 || s.stage >= schedule_.stages || s.micro_batch < 0 || s.micro_batch >= schedule_.micro_batches)
      throw bad_input("schedule " + schedule_.name + ", rank " + std::to_string(rank) + ": " + describe(s) +
                      ", but there are " + std::to_string(schedule_.stages) + " stages and " +
                      std::to_string(schedule_.micro_batches) + " micro-batches");
    if (s.kind == slot::update) return;
    place& mine = places_[index(s.kind, s.stage, s.micro_batch)];
    if (mine) throw bad_input("schedule " + schedule_.name + " has " + describe(s) + " twice");
    mine = {rank, at};
  }

  const pipeline_schedule& schedule_;
  std::vector<place> places_;
};

}  // namespace detail

/// Throws bad_input, which says what is missing or twice, unless every stage runs every micro-batch forward, then
/// backward on the same rank, whole or in both halves, and counts all in an update.
inline void check(const pipeline_schedule& s) {
  const detail::slot_places places(s);
  if (s.slices < 1 || s.stages % s.slices != 0)
    throw bad_input("schedule " + s.name + " has " + std::to_string(s.stages) + " stages in slices of " +
                    std::to_string(s.slices) + ": each stage has as many slices");
  const auto fail = [&](const slot& what, const char* how) {
    throw bad_input("schedule " + s.name + ": " + describe(what) + how);
  };
  std::map<std::pair<int, int>, int> last_update;  // by rank and stage, where it stands
  for (int r = 0; r < s.count(); ++r)
    for (std::size_t i = 0; i < s.ranks[static_cast<std::size_t>(r)].size(); ++i)
      if (const slot& x = s.ranks[static_cast<std::size_t>(r)][i]; x.kind == slot::update) {
        const auto [before, first] = last_update.try_emplace({r, x.stage}, static_cast<int>(i));
        if (!first && s.ranks[static_cast<std::size_t>(r)][static_cast<std::size_t>(before->second)] == x)
          fail(x, " stands there twice");
        before->second = static_cast<int>(i);
      }
  for (int stage = 0; stage < s.stages; ++stage)
    for (int m = 0; m < s.micro_batches; ++m) {
      const auto forward = places.of(slot::forward, stage, m), whole = places.of(slot::backward, stage, m),
                 inputs = places.of(slot::backward_inputs, stage, m),
                 weights = places.of(slot::backward_weights, stage, m);
      if (!forward) fail({slot::forward, stage, m}, " is missing");
      if (!whole && !inputs) fail({slot::backward, stage, m}, " is missing");
      if (whole && (inputs || weights)) fail({slot::backward, stage, m}, " stands there whole, and in parts");
      if (!whole && !weights) fail({slot::backward_weights, stage, m}, " is missing, its other half is there");
      for (const auto& back : {whole, inputs, weights})
        if (back && (back.rank != forward.rank || back.at < forward.at))
          fail({slot::backward, stage, m}, " does not follow its forward on the same rank");
      if (inputs && weights.at < inputs.at) fail({slot::backward_weights, stage, m}, " stands before that for inputs");
      if (stage % s.slices > 0) {  // what a slice leaves for the next, and the next for its backward
        const auto last = places.of(slot::forward, stage - 1, m), behind = places.of_inputs(stage - 1, m);
        if (!last || last.rank != forward.rank || last.at > forward.at)
          fail({slot::forward, stage, m}, " does not follow that of the slice before it on the same rank");
        if (behind && behind.at < (whole ? whole.at : inputs.at))
          fail({slot::backward, stage, m}, " does not precede that of the slice before it");
      }
      const auto update = last_update.find({forward.rank, stage});
      if (update == last_update.end() || update->second < (whole ? whole.at : weights.at))
        fail({slot::backward, stage, m}, " is followed by no update");
    }
}

}  // namespace cfp
