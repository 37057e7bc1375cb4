// What layouts take in more micro-batches says which are not worth a look in fewer.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class known_passes {
 public:
  /// Milliseconds that the passes of a step take on one place; of a layout first with most micro-batches.
  void add(const std::string& layout, int micro_batches, double ms) { known_[layout].emplace_back(micro_batches, ms); }

  /// Milliseconds of a step in equal stages of so many micro-batches; 0: not known. Larger micro-batches take less for
  /// all of them, but a doubling brings no more than the one before.
  double estimated(const std::string& layout, int places, int micro_batches) const {
    const auto at = known_.find(layout);
    if (at == known_.end() || at->second.size() < 2) return 0;
    const auto& [more, ms_of_more] = at->second[at->second.size() - 2];
    const auto& [fewer, ms_of_fewer] = at->second.back();
    const double steps =
        std::log2(static_cast<double>(fewer) / micro_batches) / std::log2(static_cast<double>(more) / fewer);
    const double passes = ms_of_fewer * std::pow(std::min(1.0, ms_of_fewer / ms_of_more), steps);
    return passes / places * (1 + (places - 1.0) / micro_batches);
  }

 private:
  std::map<std::string, std::vector<std::pair<int, double>>> known_;
};

}  // namespace cfp::inline v0_1::detail
