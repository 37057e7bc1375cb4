// In which partitions decisions leave and need tensors, choice by choice: equal lists have one number.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/model/partition_key.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Of the decisions of one graph, which must outlive this.
class known_partitions {
 public:
  explicit known_partitions(const graph& g) : g_(g), readers_(consumers(g)) {}

  /// For each choice the rank of its partitions among those that differ, in the order in which they appear.
  struct list {
    std::vector<std::size_t> rank;
    std::size_t distinct = 0;
    std::vector<partition> all{};  ///< the distinct ones, where a choice has one
  };
  const list& operator[](int number) const { return lists_[static_cast<std::size_t>(number)]; }

  /// Operations that read a value.
  const std::vector<int>& readers(int v) const { return readers_[static_cast<std::size_t>(v)]; }

  /// The list of a tensor as a decision leaves it.
  int after(const decision& d, int v) {
    place at = operation_of(d, g_[v].producer);
    if (at.position >= 0) at.slot = g_.at(g_[v].producer).results.find(v);
    else if (d.kind == decision::rest_of_weight) at = {0, 0, true};
    return known(d, v, at);
  }
  /// The list of a tensor as a decision first needs it.
  int before(const decision& d, int v) {
    place at;
    const std::vector<int>& some = readers(v).size() < d.operations.size() ? readers(v) : d.operations;
    const auto reads = [&](int o) { return g_.at(o).operands.contains(v) && operation_of(d, o).position >= 0; };
    if (const auto first = std::find_if(some.begin(), some.end(), reads); first != some.end())
      at = operation_of(d, *first);
    at.is_operand = true;
    if (at.position >= 0) at.slot = operation_at(d, at).operands.find(v);
    return known(d, v, at);
  }

 private:
  // Alike decisions have alike tensors in one place: of an operation, by its position, and there of an operand or
  // result.
  struct place {
    int position = -1, slot = -1;
    bool is_operand = false;
  };
  static place operation_of(const decision& d, int o) {
    const auto at = std::lower_bound(d.operations.begin(), d.operations.end(), o);
    return {at != d.operations.end() && *at == o ? static_cast<int>(at - d.operations.begin()) : -1};
  }
  const operation& operation_at(const decision& d, const place& p) const {
    return g_.at(d.operations[static_cast<std::size_t>(p.position)]);
  }
  partition partition_of(const decision& d, int v, const place& p, std::size_t choice) const {
    if (p.position < 0) return partition::replicated(g_[v].rank());
    const assignment& a = d.assigned[choice][static_cast<std::size_t>(p.position)];
    const operation& o = operation_at(d, p);
    return p.is_operand ? operand_partition(o.r, p.slot, a) : result_partition(o.r, p.slot, a);
  }

  int known(const decision& d, int v, const place& p) {
    const auto of_choice = [&](std::size_t c) { return partition_of(d, v, p, c); };
    if (d.kind == decision::forms_of_tensor) {
      const auto [at, fresh] = of_forms_.try_emplace(d.forms.id());
      if (fresh) at->second = of(d, of_choice);
      return at->second;
    }
    const int position = p.position < 0 ? -1 - g_[v].rank() : p.position;
    const auto [at, fresh] = at_.try_emplace({d.assigned.id(), p.is_operand, position, p.slot});
    if (fresh) at->second = of(d, of_choice);
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

  const graph& g_;
  const std::vector<std::vector<int>> readers_;
  std::map<std::tuple<const void*, bool, int, int>, int> at_;
  std::map<const void*, int> of_forms_;
  std::map<std::string, int> number_;
  std::vector<list> lists_;
};

}  // namespace cfp::detail
