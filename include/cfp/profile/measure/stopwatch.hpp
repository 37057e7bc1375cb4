// Times what is put into a device's main queue. Repeats in which the clock of the device has dropped do not count.
//
// A Device (backend/engine.hpp) that is to be timed also has
//   tick(n), between(a, b)   notes the time when the main queue comes there; milliseconds from one to another, once
//   that is done sweep()                  puts into the main queue what writes over the caches clock_MHz() of the
//   processors now; 0: not known
#pragma once

#include <cfp/profile/summary.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace cfp::inline v0_1 {

/// Milliseconds: the median of the repeats, half the distance of their quartiles.
struct timing {
  double ms = 0, spread = 0;
  int repeats = 0;
  int slow = 0;                        ///< repeats left out because the clock was below the highest one seen
  double least_MHz = 0, most_MHz = 0;  ///< clocks seen
};

/// How long is measured.
struct timing_options {
  double seconds = 0.3;  ///< after which `least` repeats are enough
  int least = 5, most = 50;
  double clock = 0.95;  ///< of the highest one seen: below it a repeat does not count, unless too many are
};

template <class Device>
class stopwatch {
 public:
  explicit stopwatch(Device& d) : device_(d) {}

  /// Each repeat by itself, after the caches were written over.
  template <class Issue>
  timing cold(const Issue& issue, const timing_options& how = {}) {
    issue();  // libraries make themselves ready
    constexpr int at_once = 5;
    return repeat(how, [&] {
      std::vector<double> ms;
      for (int i = 0; i < at_once; ++i) {
        device_.sweep();
        device_.tick(2 * i);
        issue();
        device_.tick(2 * i + 1);
      }
      device_.wait();
      for (int i = 0; i < at_once; ++i) ms.push_back(device_.between(2 * i, 2 * i + 1));
      return ms;
    });
  }

  /// Many one after the other, recorded and replayed, as in a step.
  template <class Issue>
  timing warm(const Issue& issue, const timing_options& how = {}) {
    issue();
    device_.wait();
    constexpr int together = 10;
    const auto all = [&] {
      for (int i = 0; i < together; ++i) issue();
    };
    const auto recorded = device_.record(all);
    const auto go = [&] { recorded ? device_.replay(recorded) : all(); };
    go();
    return repeat(how, [&] {
      device_.tick(0);
      go();
      device_.tick(1);
      device_.wait();
      return std::vector<double>{device_.between(0, 1) / together};
    });
  }

 private:
  template <class Some>
  timing repeat(const timing_options& how, const Some& some) {
    using clock = std::chrono::steady_clock;
    std::vector<double> ms, all;
    timing seen;
    const auto begin = clock::now();
    while (static_cast<int>(ms.size()) < how.most) {
      const bool late = std::chrono::duration<double>(clock::now() - begin).count() > how.seconds;
      if (late && static_cast<int>(ms.size()) >= how.least) break;
      if (late && static_cast<int>(all.size()) >= 4 * how.least) break;  // the clock does not recover
      const std::vector<double> now = some();
      const double MHz = device_.clock_MHz();
      highest_ = std::max(highest_, MHz);
      seen.most_MHz = std::max(seen.most_MHz, MHz);
      seen.least_MHz = seen.least_MHz > 0 ? std::min(seen.least_MHz, MHz) : MHz;
      all.insert(all.end(), now.begin(), now.end());
      if (MHz >= how.clock * highest_) ms.insert(ms.end(), now.begin(), now.end());
    }
    const measurement m = summarise(static_cast<int>(ms.size()) >= how.least ? ms : all);
    timing out{m.median, m.spread, m.repeats};
    out.slow = static_cast<int>(all.size() - ms.size());
    out.least_MHz = seen.least_MHz;
    out.most_MHz = seen.most_MHz;
    return out;
  }

  Device& device_;
  double highest_ = 0;  // clock ever seen
};

}  // namespace cfp
