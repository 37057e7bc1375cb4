// Kinds of groups of operations: what is found out about one group holds of all of its kind.
#pragma once

#include <cfp/model/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Numbers the kinds of groups of one graph. Of one kind are groups whose operations are equal one by one: rules,
/// sizes, scalars, wiring, what is a gradient of what, and of tensors the names of dimensions. Equal kinds have equal
/// fingerprints. All is compared, never only a hash of it.
class operation_kinds {
 public:
  explicit operation_kinds(const graph& g) : g_(g), there_(g.values.size()), here_(g.values.size()) {}

  int operator()(const std::vector<int>& operations) {
    std::vector<int>& similar = by_hash_[hash(operations)];
    for (const int kind : similar)
      if (equal(operations, groups_[static_cast<std::size_t>(kind)])) return kind;
    similar.push_back(static_cast<int>(groups_.size()));
    groups_.push_back(operations);
    return similar.back();
  }

 private:
  struct twin {
    int of = -1, value = -1;  // in which comparison, and which value of the other group
  };

  std::uint64_t hash(const std::vector<int>& operations) const {
    std::uint64_t out = operations.size();
    const auto put = [&](std::uint64_t x) { out = (out ^ x) * 1099511628211UL; };
    for (const int o : operations) {
      const operation& op = g_.at(o);
      put(reinterpret_cast<std::uintptr_t>(op.op));
      for (const long s : op.sizes) put(static_cast<std::uint64_t>(s));
    }
    return out;
  }

  bool equal(const std::vector<int>& a, const std::vector<int>& b) {
    if (a.size() != b.size()) return false;
    ++comparison_;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!equal(g_.at(a[i]), g_.at(b[i]))) return false;
    return true;
  }
  bool equal(const operation& a, const operation& b) {
    if (a.op != b.op || a.when != b.when || !(a.sizes == b.sizes) || !(a.scalars == b.scalars) || !(a.r == b.r) ||
        a.operands.size() != b.operands.size() || a.results.size() != b.results.size() ||
        (a.origin < 0) != (b.origin < 0))
      return false;
    for (int k = 0; k < a.operands.size(); ++k)
      if (!tie(a.operands[k], b.operands[k])) return false;
    for (int k = 0; k < a.results.size(); ++k)
      if (!tie(a.results[k], b.results[k])) return false;
    return tie(a.hub, b.hub) && (a.origin < 0 || tie(g_.at(a.origin).results[0], g_.at(b.origin).results[0]));
  }

  // Values that stand for each other, everywhere or nowhere.
  bool tie(int a, int b) {
    if (a < 0 || b < 0) return a == b;
    twin &of_a = there_[static_cast<std::size_t>(a)], &of_b = here_[static_cast<std::size_t>(b)];
    if (of_a.of == comparison_ || of_b.of == comparison_)
      return of_a.of == of_b.of && of_a.value == b && of_b.value == a;
    of_a = {comparison_, b};
    of_b = {comparison_, a};
    const value &x = g_[a], &y = g_[b];
    return x.type == y.type && x.role == y.role && x.shape == y.shape && x.dims == y.dims && x.group == y.group &&
           x.fill.bound == y.fill.bound;
  }

  const graph& g_;
  std::vector<std::vector<int>> groups_;                         // of each kind the first
  std::unordered_map<std::uint64_t, std::vector<int>> by_hash_;  // kinds
  std::vector<twin> there_, here_;                               // of the values of either group
  int comparison_ = 0;
};

}  // namespace cfp::detail
