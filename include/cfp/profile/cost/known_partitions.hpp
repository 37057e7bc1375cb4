// In which partitions decisions leave and need tensors, choice by choice: equal lists have one number.
#pragma once

#include <cfp/block/decision.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

class known_partitions {
 public:
  /// For each choice the rank of its partitions among those that differ.
  struct list {
    std::vector<std::size_t> rank;
    std::size_t distinct = 0;
  };
  const list& operator[](int number) const { return lists_[static_cast<std::size_t>(number)]; }

  /// The list of a tensor as a decision leaves it.
  int after(const graph& g, const decision& d, int v) {
    return of(d, [&](std::size_t c) { return held_after(g, d, c, v); });
  }
  /// The list of a tensor as a decision first needs it.
  int before(const graph& g, const decision& d, int v) {
    return of(d, [&](std::size_t c) { return needed_by(g, d, c, v); });
  }

 private:
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
      now.rank.push_back(seen.try_emplace(text, seen.size()).first->second);
      all.append(text).append(1, '|');
    }
    now.distinct = seen.size();
    const auto [at, fresh] = number_.try_emplace(std::move(all), static_cast<int>(lists_.size()));
    if (fresh) lists_.push_back(std::move(now));
    return at->second;
  }

  static void put(std::string& out, const partition& p) {
    for (const auto& axes : p.dims) {
      for (const signed char a : axes) out += static_cast<char>('0' + a);
      out += ',';
    }
    for (const partition::debt& d : p.partial)
      out += d.owed ? static_cast<char>('A' + static_cast<int>(d.combine)) : '-';
    out += ';';
  }

  std::map<std::string, int> number_;
  std::vector<list> lists_;
};

}  // namespace cfp::detail
