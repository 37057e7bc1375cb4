// What a schedule takes: when each slot runs, who stands idle, what is held, which versions of weights are there.
#pragma once

#include <cfp/pipeline/pipeline_schedule.hpp>
#include <cfp/pipeline/stage_cost.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace cfp::inline v0_1 {

struct slot_times {
  double begin = 0, end = 0;
};

/// Of the time of all ranks, `ms` each, the part in which they are not busy.
inline double idle_share(double ms, const std::vector<double>& busy) {
  double all = 0;
  for (const double b : busy) all += b;
  return ms > 0 ? 1 - all / (ms * static_cast<double>(busy.size())) : 0;
}

struct pipeline_run {
  double ms = 0;                               ///< from the first slot to the end of the last
  std::vector<std::vector<slot_times>> slots;  ///< as in the schedule
  std::vector<double> busy;                    ///< milliseconds per rank
  std::vector<double> peak;                    ///< bytes that a rank keeps of micro-batches, at most
  std::vector<int> versions;                   ///< of the weights of each stage, that are needed at one time
  std::vector<int> staleness;                  ///< per stage: updates between what a gradient is of and what it changes
  bool consistent = true;                      ///< forward and backward of a micro-batch read the same weights

  /// Of the time of all ranks, the part in which they do nothing.
  double idle() const { return idle_share(ms, busy); }
};

namespace detail {

class pipeline_simulation {
 public:
  /// All of them must outlive this.
  pipeline_simulation(const pipeline_schedule& s, const slot_places& places, const std::vector<stage_cost>& costs)
      : s_(s), costs_(costs), places_(places), next_(s.ranks.size()), free_(s.ranks.size()), links_(s.ranks.size()) {
    if (costs.size() != static_cast<std::size_t>(s.stages) &&
        costs.size() != static_cast<std::size_t>(s.stages) * at(s.micro_batches))
      throw bad_input("schedule " + s.name + " has " + std::to_string(s.stages) + " stages, and there are " +
                      std::to_string(costs.size()) +
                      " costs: one for each stage is needed, or for each of its micro-batches");
    for (const stage_cost& c : costs) check(c);
  }

  /// Milliseconds from the first slot to the end of the last.
  double ms() {
    for (const auto& mine : s_.ranks) out_.slots.emplace_back(mine.size());
    out_.busy.assign(s_.ranks.size(), 0);
    std::size_t left = 0;
    for (const auto& mine : s_.ranks) left += mine.size();
    while (left > 0) {
      const std::size_t before = left;
      for (std::size_t r = 0; r < s_.ranks.size(); ++r)
        while (next_[r] < s_.ranks[r].size() && step(r)) --left;
      if (left == before) throw bad_input(stuck());
    }
    return *std::max_element(free_.begin(), free_.end());
  }
  pipeline_run run() {
    out_.ms = ms();
    count_kept();
    count_versions();
    return std::move(out_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const stage_cost& cost(int stage, int micro_batch) const {
    return costs_[costs_.size() == at(s_.stages) ? at(stage) : at(stage) * at(s_.micro_batches) + at(micro_batch)];
  }

  // Where what a slot waits for stands, beside what its own rank did before: of the neighbouring stage.
  slot_places::place waits_for(const slot& x) const {
    if (x.kind == slot::forward && s_.before(x.stage) >= 0)
      return places_.of(slot::forward, s_.before(x.stage), x.micro_batch);
    if ((x.kind == slot::backward || x.kind == slot::backward_inputs) && s_.after(x.stage) < s_.stages)
      return places_.of_inputs(s_.after(x.stage), x.micro_batch);
    return {};
  }

  // Runs the next slot of a rank, if what it waits for has run.
  bool step(std::size_t r) {
    const slot& x = s_.ranks[r][next_[r]];
    double begin = free_[r];
    if (const auto from = waits_for(x)) {
      if (at(from.at) >= next_[at(from.rank)]) return false;
      begin = std::max(begin, arrives(from, static_cast<int>(r)));
    }
    const double takes = cost(x.stage, x.micro_batch).of(x.kind);
    out_.slots[r][next_[r]++] = {begin, begin + takes};
    free_[r] = begin + takes;
    out_.busy[r] += takes;
    return true;
  }

  // When what a slot made is there on a rank. Whatever one rank sends another goes one after the other, as it was made.
  double arrives(const slot_places::place& from, int rank) {
    const double made = out_.slots[at(from.rank)][at(from.at)].end;
    if (from.rank == rank) return made;
    link& l = links_[at(rank)][from.rank];
    for (; l.sent <= from.at; ++l.sent) {  // what was made before goes first
      const slot& x = s_.ranks[at(from.rank)][at(l.sent)];
      const double takes = receiver(x) == rank ? sends(x) : 0;
      if (takes > 0) l.free = std::max(l.free, out_.slots[at(from.rank)][at(l.sent)].end) + takes;
      l.there.push_back(takes > 0 ? l.free : out_.slots[at(from.rank)][at(l.sent)].end);
    }
    return l.there[at(from.at)];
  }
  double sends(const slot& x) const {
    const stage_cost& c = cost(x.stage, x.micro_batch);
    return x.kind == slot::forward ? c.send_forward : c.send_backward;
  }
  // The rank that waits for what a slot makes, or -1.
  int receiver(const slot& x) const {
    if (x.kind == slot::forward)
      return s_.after(x.stage) < s_.stages ? places_.of(slot::forward, s_.after(x.stage), x.micro_batch).rank : -1;
    if (x.kind == slot::backward || x.kind == slot::backward_inputs)
      return s_.before(x.stage) >= 0 ? places_.of_inputs(s_.before(x.stage), x.micro_batch).rank : -1;
    return -1;
  }

  std::string stuck() const {
    std::string out = "schedule " + s_.name + " waits for itself:";
    for (std::size_t r = 0; r < s_.ranks.size(); ++r) {
      if (next_[r] == s_.ranks[r].size()) continue;
      const slot& x = s_.ranks[r][next_[r]];
      const auto from = waits_for(x);
      out += " rank " + std::to_string(r) + " with " + describe(x);
      if (from)
        out += " for " + describe(s_.ranks[at(from.rank)][at(from.at)]) + " on rank " + std::to_string(from.rank);
      out += ';';
    }
    out.back() = '.';
    return out;
  }

  void count_kept() {
    for (const auto& mine : s_.ranks) {
      double now = 0, most = 0;
      for (const slot& x : mine) {
        if (x.kind == slot::forward) most = std::max(most, now += cost(x.stage, x.micro_batch).kept);
        if (x.kind == slot::backward || x.kind == slot::backward_weights) now -= cost(x.stage, x.micro_batch).kept;
      }
      out_.peak.push_back(most);
    }
  }

  void count_versions() {
    out_.versions.assign(at(s_.stages), 1);
    out_.staleness.assign(at(s_.stages), 0);
    for (const auto& mine : s_.ranks) {
      std::map<int, int> newest;                // per stage
      std::map<std::pair<int, int>, int> read;  // by stage and micro-batch, while it is under way
      std::map<int, std::map<int, int>> held;   // per stage and version, by how many of those
      for (const slot& x : mine) {
        int& version = newest[x.stage];
        const std::pair<int, int> of{x.stage, x.micro_batch};
        if (x.kind == slot::update) ++version;
        if (x.kind == slot::forward) ++held[x.stage][read[of] = version_for(x, version)];
        if (x.kind == slot::backward || x.kind == slot::backward_weights) {
          const int then = read.at(of), applied = version;
          out_.consistent = out_.consistent && (s_.reads != weights_read::newest || then == version);
          out_.staleness[at(x.stage)] = std::max(out_.staleness[at(x.stage)], applied - then);
          read.erase(of);
          if (--held[x.stage][then] == 0) held[x.stage].erase(then);
        }
        if (s_.reads == weights_read::newest) continue;  // one is all there is
        const std::map<int, int>& mine_now = held[x.stage];
        const auto different = static_cast<int>(mine_now.size() + (mine_now.count(version) > 0 ? 0 : 1));
        out_.versions[at(x.stage)] = std::max(out_.versions[at(x.stage)], different);
      }
    }
  }
  int version_for(const slot& x, int newest) const {
    if (s_.reads != weights_read::delayed) return newest;
    return std::max(0, x.micro_batch / std::max(1, s_.batch) - 1);
  }

  struct link {
    int sent = 0;  // slots of the sender that have been looked at
    double free = 0;
    std::vector<double> there;  // when what each of them made was
  };

  const pipeline_schedule& s_;
  const std::vector<stage_cost>& costs_;
  const slot_places& places_;
  std::vector<std::size_t> next_;
  std::vector<double> free_;
  std::vector<std::map<int, link>> links_;  // of each rank, by those that send it something
  pipeline_run out_;
};

}  // namespace detail

/// A schedule that is run with many costs. Throws bad_input for one that is none (`check`).
class simulated_schedule {
 public:
  explicit simulated_schedule(pipeline_schedule s) : schedule_(std::move(s)), places_((check(schedule_), schedule_)) {}
  simulated_schedule(const simulated_schedule&) = delete;

  /// Runs it on stages that take `costs`: one for each stage, or for each micro-batch of each ([stage][micro_batch])
  /// where they differ. Throws bad_input where its ranks wait for one another.
  pipeline_run run(const std::vector<stage_cost>& costs) const {
    return detail::pipeline_simulation(schedule_, places_, costs).run();
  }
  /// What it takes, nothing else of it being asked.
  double ms(const std::vector<stage_cost>& costs) const {
    return detail::pipeline_simulation(schedule_, places_, costs).ms();
  }

 private:
  const pipeline_schedule schedule_;
  const detail::slot_places places_;
};

/// Runs a schedule once.
inline pipeline_run simulate(const pipeline_schedule& s, const std::vector<stage_cost>& costs) {
  return simulated_schedule(s).run(costs);
}

}  // namespace cfp
