// What every instruction of a pipeline's programs takes where its place is.
#pragma once

#include <cfp/profile/machine/described_times.hpp>
#include <cfp/profile/machine/machine_pools.hpp>
#include <cfp/profile/machine/stage_timeline.hpp>

#include <optional>
#include <vector>

namespace cfp::inline v0_1 {

class pipeline_times {
 public:
  /// `known`: instructions measured on such devices, where all are of one kind.
  explicit pipeline_times(const placed_pools& on, known_instructions* known = nullptr) : on_(on) {
    of_pool_.resize(static_cast<std::size_t>(on.pools()));
    for (int place = 0; place < on.places(); ++place)
      if (std::optional<described_times>& here = of_pool(place); !here)
        here.emplace(on.seen_from(on.pool(place)), on.whole(), on.pools() == 1 ? known : nullptr);
  }

  /// Milliseconds of each instruction of a place's program, alone.
  std::vector<double> operator()(const program& p, const graph& g) {
    described_times& here = *of_pool(p.place);
    std::vector<double> out;
    for (const instruction& i : p.code) {
      if (i.nothing || !i.crosses()) {
        out.push_back(here(i, p, g));
        continue;
      }
      const bool sends = i.kind == instruction::send;
      const auto bytes = static_cast<double>(p[i.crossed()].bytes);
      out.push_back(1000 * on_.send_seconds(sends ? p.place : i.with, sends ? i.with : p.place, bytes));
    }
    return out;
  }
  /// Of each place.
  std::vector<stream_pace> paces() const {
    std::vector<stream_pace> out;
    for (int place = 0; place < on_.places(); ++place) {
      const device_type& d = on_.own(on_.pool(place)).device;
      out.push_back({d.contention, 1000 * d.hand_over});
    }
    return out;
  }

 private:
  std::optional<described_times>& of_pool(int place) { return of_pool_[static_cast<std::size_t>(on_.pool(place))]; }

  const placed_pools on_;
  std::vector<std::optional<described_times>> of_pool_;  // of those that places are in
};

}  // namespace cfp
