// In which partitions decisions leave and need tensors, choice by choice: equal lists have one number.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/model/partition_key.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Of the decisions of one graph.
class known_partitions {
 public:
  /// For each choice the rank of its partitions among those that differ, in the order in which they appear.
  struct list {
    std::vector<std::size_t> rank;
    std::size_t distinct = 0;
    std::vector<partition> all{};  ///< the distinct ones, where a choice has one
  };
  const list& operator[](int number) const { return lists_[static_cast<std::size_t>(number)]; }

  /// The list of a tensor as a decision leaves it.
  int after(const graph& g, const decision& d, int v) {
    return known(g, d, v, false, [&](std::size_t c) { return held_after(g, d, c, v); });
  }
  /// The list of a tensor as a decision first needs it.
  int before(const graph& g, const decision& d, int v) {
    return known(g, d, v, true, [&](std::size_t c) { return needed_by(g, d, c, v); });
  }

 private:
  // Alike decisions have alike tensors in one place: of an operation, by its position, and there of an operand or
  // result.
  template <class Partition>
  int known(const graph& g, const decision& d, int v, bool needed, const Partition& partition_of) {
    if (d.kind == decision::forms_of_tensor) {
      const auto [at, fresh] = of_forms_.try_emplace(d.forms.id());
      if (fresh) at->second = of(d, partition_of);
      return at->second;
    }
    int position = -1 - g[v].rank(), slot = -1;
    for (std::size_t i = 0; i < d.operations.size() && slot < 0; ++i) {
      const operation& o = g.at(d.operations[i]);
      slot = needed ? o.operands.find(v) : o.results.find(v);
      if (slot >= 0) position = static_cast<int>(i);
    }
    const auto [at, fresh] = at_.try_emplace({d.assigned.id(), needed, position, slot});
    if (fresh) at->second = of(d, partition_of);
    return at->second;
  }

  template <class Partition>
  int of(const decision& d, const Partition& partition_of) {
    std::map<std::string, std::size_t> seen;
    list now;
    std::string all;  // of every choice
    for (std::size_t c = 0; c < d.choices(); ++c) {
      std::string text;
      if (d.kind == decision::forms_of_tensor)
        for (const partition& p : d.forms[c]) put(text, p);
      else put(text, partition_of(c));
      const auto [at, fresh] = seen.try_emplace(text, seen.size());
      if (fresh && d.kind != decision::forms_of_tensor) now.all.push_back(partition_of(c));
      now.rank.push_back(at->second);
      all.append(text).append(1, '|');
    }
    now.distinct = seen.size();
    const auto [at, fresh] = number_.try_emplace(std::move(all), static_cast<int>(lists_.size()));
    if (fresh) lists_.push_back(std::move(now));
    return at->second;
  }

  std::map<std::tuple<const void*, bool, int, int>, int> at_;
  std::map<const void*, int> of_forms_;
  std::map<std::string, int> number_;
  std::vector<list> lists_;
};

}  // namespace cfp::detail
