// A tensor seen through reshapes and transposes: which factors its dimensions are made of as it is stored, and as it
// is seen. Movements that follow each other are one, and those that undo each other none.
#pragma once

#include <cfp/graphs/rule_sketch.hpp>

#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// Dimensions of one element do not stand in it: they move nothing.
class tensor_view {
 public:
  tensor_view() = default;
  /// As it is stored: names and sizes of its dimensions.
  explicit tensor_view(const std::vector<std::pair<std::string, long>>& dims) {
    for (const auto& [label, size] : dims) stored_.push_back({parts_.add(label, size)});
    seen_ = stored_;
  }

  const rule_sketch& parts() const { return parts_; }
  const factor_lists& stored() const { return stored_; }
  const factor_lists& seen() const { return seen_; }
  bool is_stored_so() const { return stored_ == seen_; }
  /// Whether every dimension is one that is stored, in whatever order.
  bool is_permuted() const {
    for (const factor_lists& dims : {stored_, seen_})
      for (const std::vector<int>& d : dims)
        if (d.size() != 1) return false;
    return true;
  }

  tensor_view permuted(const std::vector<std::size_t>& order) const {
    tensor_view out = *this;
    for (std::size_t d = 0; d < order.size(); ++d) out.seen_[d] = seen_[order[d]];
    return out;
  }

  /// Seen in another shape of as many elements; false where the cuts of both do not align, as of 6 x 4 seen as 4 x 6.
  bool reshape(const std::vector<long>& sizes) {
    tensor_view out = *this;
    std::vector<int> flat;
    for (const std::vector<int>& d : seen_) flat.insert(flat.end(), d.begin(), d.end());
    factor_lists seen(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0;) {
      long rest = sizes[d];
      while (rest > 1) {
        if (flat.empty()) return false;
        const int f = flat.back();
        const long size = out.parts_[f].size;
        flat.pop_back();
        if (rest % size == 0) {
          rest /= size;
          seen[d].insert(seen[d].begin(), f);
        } else if (size % rest == 0) {
          const auto [major, minor] = out.cut(f, rest);
          for (factor_lists* lists : {&seen, &out.stored_}) replace(*lists, f, major, minor);
          flat.push_back(major);
          seen[d].insert(seen[d].begin(), minor);
          rest = 1;
        } else {
          return false;
        }
      }
    }
    if (!flat.empty()) return false;
    out.seen_ = std::move(seen);
    *this = std::move(out);
    return true;
  }

  /// One movement from what is stored to what is seen.
  rule_sketch movement() const {
    rule_sketch out = parts_;
    out.operands = {stored_};
    out.results = {seen_};
    return out;
  }

 private:
  // The parts of a factor, whose minor one has this size; the factor itself becomes the major one.
  std::pair<int, int> cut(int f, long minor) {
    const long size = parts_[f].size;
    const int added = parts_.add(name_of_size(minor), minor);
    parts_[f] = {};
    std::vector<std::string> taken;
    for (const rule_sketch::factor& other : parts_.factors) taken.push_back(other.label);
    parts_[f] = {free_name(name_of_size(size / minor), taken), size / minor};
    return {f, added};
  }
  static void replace(factor_lists& lists, int f, int major, int minor) {
    for (std::vector<int>& d : lists)
      for (std::size_t k = 0; k < d.size(); ++k)
        if (d[k] == f) {
          d[k] = major;
          d.insert(d.begin() + static_cast<std::ptrdiff_t>(k) + 1, minor);
          ++k;
        }
  }

  rule_sketch parts_;
  factor_lists stored_, seen_;
};

}  // namespace cfp::graphs
