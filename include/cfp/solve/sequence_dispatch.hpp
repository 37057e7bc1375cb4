// Sequences of all lengths given to pipelines, each of which takes sequences up to some length: the least time of the
// pipeline that takes longest. (The first of two stages of Hydraulis, arXiv 2412.07894; the second is packing.hpp.)
#pragma once

#include <cfp/core/bad_input.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// A pipeline, or any other group of ranks that has all of a model: what a sequence of l tokens takes there.
struct sequence_pipeline {
  long longest = 0;               ///< tokens of a sequence that its memory is enough for, which grows with them
  double square = 0, linear = 0;  ///< milliseconds are square l^2 + linear l
  int devices = 1;

  bool takes(long tokens) const { return tokens <= longest; }
  double ms(long tokens) const {
    const auto l = static_cast<double>(tokens);
    return (square * l + linear) * l;
  }
};

struct dispatched {
  std::vector<int> pipeline;  ///< of each sequence
  std::vector<double> load;   ///< milliseconds of each pipeline
  double ms = 0;              ///< of the longest
  double bound = 0;           ///< milliseconds that no dispatch is below
  long looked_at = 0;

  double gap() const { return ms > 0 ? 1 - bound / ms : 0; }
  /// Of the longest, over the mean.
  double imbalance() const {
    const double sum = std::accumulate(load.begin(), load.end(), 0.0);
    return sum > 0 ? ms * static_cast<double>(load.size()) / sum : 1;
  }
};

namespace detail {

class dispatch_search {
 public:
  dispatch_search(const std::vector<long>& lengths, const std::vector<sequence_pipeline>& pipelines, long most)
      : pipelines_(pipelines), most_(most), order_(lengths.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
    for (const std::size_t s : order_) length_.push_back(lengths[s]);
    find_bounds();
  }

  dispatched run() {
    best_.load.assign(pipelines_.size(), 0), best_.ms = infinity;
    best_.bound = bound_;
    std::vector<double> load(pipelines_.size(), 0);
    std::vector<int> chosen;
    place_each_least(load, chosen);
    improve(load, chosen);
    offer(load, chosen);
    load.assign(load.size(), 0), chosen.clear();
    extend(load, chosen);
    if (!cut_short_) best_.bound = best_.ms;
    dispatched out = best_;
    out.pipeline.assign(order_.size(), 0);
    for (std::size_t n = 0; n < order_.size(); ++n) out.pipeline[order_[n]] = best_.pipeline[n];
    return out;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // What the sequences from each on take at least, in all: where they are quickest. And what no dispatch is below: of
  // the longest sequences, only the pipelines that take them share the work.
  void find_bounds() {
    rest_.assign(length_.size() + 1, 0);
    for (std::size_t n = length_.size(); n-- > 0;) rest_[n] = rest_[n + 1] + quickest(length_[n]);
    double sum = 0;
    for (const long l : length_) {
      const auto takers =
          std::count_if(pipelines_.begin(), pipelines_.end(), [&](const sequence_pipeline& p) { return p.takes(l); });
      sum += quickest(l);
      bound_ = std::max({bound_, quickest(l), sum / static_cast<double>(takers)});
    }
  }
  double quickest(long tokens) const {
    double out = infinity;
    for (const sequence_pipeline& p : pipelines_)
      if (p.takes(tokens)) out = std::min(out, p.ms(tokens));
    return out;
  }

  // The longest first, each where it ends first.
  void place_each_least(std::vector<double>& load, std::vector<int>& chosen) const {
    for (const long l : length_) {
      int best = -1;
      for (std::size_t p = 0; p < pipelines_.size(); ++p)
        if (pipelines_[p].takes(l) &&
            (best < 0 || load[p] + pipelines_[p].ms(l) < load[at(best)] + pipelines_[at(best)].ms(l)))
          best = static_cast<int>(p);
      load[at(best)] += pipelines_[at(best)].ms(l);
      chosen.push_back(best);
    }
  }
  // Moves one, or exchanges two, while the longest of both ends sooner.
  void improve(std::vector<double>& load, std::vector<int>& chosen) const {
    for (bool better = true; better;) {
      better = false;
      const auto longest = static_cast<int>(std::max_element(load.begin(), load.end()) - load.begin());
      for (std::size_t n = 0; n < chosen.size() && !better; ++n) {
        if (chosen[n] != longest) continue;
        for (std::size_t p = 0; p < pipelines_.size() && !better; ++p)
          better = static_cast<int>(p) != longest && (moved(load, chosen, n, p) || exchanged(load, chosen, n, p));
      }
    }
  }
  bool moved(std::vector<double>& load, std::vector<int>& chosen, std::size_t n, std::size_t to) const {
    const sequence_pipeline &here = pipelines_[at(chosen[n])], &there = pipelines_[to];
    double& mine = load[at(chosen[n])];
    if (!there.takes(length_[n]) || load[to] + there.ms(length_[n]) >= mine * (1 - 1e-12)) return false;
    mine -= here.ms(length_[n]), load[to] += there.ms(length_[n]);
    chosen[n] = static_cast<int>(to);
    return true;
  }
  bool exchanged(std::vector<double>& load, std::vector<int>& chosen, std::size_t n, std::size_t with) const {
    const std::size_t from = at(chosen[n]);
    const sequence_pipeline &here = pipelines_[from], &there = pipelines_[with];
    if (!there.takes(length_[n])) return false;
    for (std::size_t m = 0; m < chosen.size(); ++m) {
      if (at(chosen[m]) != with || !here.takes(length_[m])) continue;
      const double mine = load[from] - here.ms(length_[n]) + here.ms(length_[m]),
                   its = load[with] - there.ms(length_[m]) + there.ms(length_[n]);
      if (std::max(mine, its) >= load[from] * (1 - 1e-12)) continue;
      load[from] = mine, load[with] = its;
      std::swap(chosen[n], chosen[m]);
      return true;
    }
    return false;
  }

  void offer(const std::vector<double>& load, const std::vector<int>& chosen) {
    const double ms = *std::max_element(load.begin(), load.end());
    if (ms < best_.ms) best_.ms = ms, best_.load = load, best_.pipeline = chosen;
  }
  // Every dispatch that may end sooner: not one whose longest, or whose mean with what is left at its quickest, does
  // not. Of pipelines that are alike and have as much to do, the first alone.
  void extend(std::vector<double>& load, std::vector<int>& chosen) {
    const std::size_t n = chosen.size();
    if (n == length_.size()) return offer(load, chosen);
    if (best_.ms <= bound_ * (1 + 1e-12)) return;
    if (best_.looked_at++ >= most_) {
      cut_short_ = true;
      return;
    }
    const double sum = std::accumulate(load.begin(), load.end(), rest_[n]);
    if (sum / static_cast<double>(load.size()) >= best_.ms * (1 - 1e-12)) return;
    for (std::size_t p = 0; p < pipelines_.size(); ++p) {
      if (!pipelines_[p].takes(length_[n]) || is_repeated(load, p)) continue;
      const double before = load[p], after = before + pipelines_[p].ms(length_[n]);
      if (after >= best_.ms * (1 - 1e-12)) continue;
      load[p] = after, chosen.push_back(static_cast<int>(p));
      extend(load, chosen);
      load[p] = before, chosen.pop_back();
    }
  }
  bool is_repeated(const std::vector<double>& load, std::size_t p) const {
    for (std::size_t q = 0; q < p; ++q)
      if (load[q] == load[p] && pipelines_[q].longest == pipelines_[p].longest &&
          pipelines_[q].square == pipelines_[p].square && pipelines_[q].linear == pipelines_[p].linear)
        return true;
    return false;
  }

  const std::vector<sequence_pipeline>& pipelines_;
  const long most_;
  std::vector<std::size_t> order_;  // the longest sequence first
  std::vector<long> length_;        // in that order
  std::vector<double> rest_;        // milliseconds
  double bound_ = 0;
  bool cut_short_ = false;
  dispatched best_;
};

}  // namespace detail

/// The dispatch of the least time, looked for in about `most` steps: `gap` says how far from the least it may be, and
/// is 0 where all were looked at. Throws bad_input for a sequence that no pipeline takes.
inline dispatched dispatch_sequences(const std::vector<long>& lengths, const std::vector<sequence_pipeline>& pipelines,
                                     long most = 200000) {
  if (pipelines.empty()) throw bad_input("there is no pipeline to give sequences to");
  for (const sequence_pipeline& p : pipelines)
    if (!(p.square >= 0 && p.linear >= 0))
      throw bad_input("a pipeline's times must be 0 or more, are " + std::to_string(p.square) + " l^2 + " +
                      std::to_string(p.linear) + " l");
  for (const long l : lengths)
    if (l < 1 || std::none_of(pipelines.begin(), pipelines.end(), [&](const auto& p) { return p.takes(l); }))
      throw bad_input("a sequence of " + std::to_string(l) +
                      " tokens: no pipeline takes it; give one more memory or more devices, or leave it out");
  return detail::dispatch_search(lengths, pipelines, most).run();
}

}  // namespace cfp
