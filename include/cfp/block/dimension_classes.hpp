// Dimension classes: the dimensions that are carried through a part, each under all the names its operations have for
// it.
#pragma once

#include <cfp/block/parallel_blocks.hpp>
#include <cfp/core/explain.hpp>

namespace cfp::inline v0_1 {

/// The dimensions carried through a part: factors of its operations that are one, joined over the tensors between them.
class dimension_classes {
 public:
  struct info {
    name label;
    bool twice = false;    ///< arrives as two factors somewhere (queries and keys of one sequence)
    bool whole = false;    ///< must stay whole somewhere
    bool parallel = true;  ///< wherever it stands it is parallel, or scanned: neighbours hand on what lies between
    bool inner = false;    ///< reduced by an anchor, and stands nowhere else
    bool minor = false;    ///< a minor factor of a dimension that its major one represents
  };

  dimension_classes(const graph& g, const part& p) : g_(g) {
    std::map<std::pair<int, int>, int> of_value;
    for (int o : p.forward) {
      const operation& op = g.at(o);
      for (int f = 0; f < op.r.factors.size(); ++f) {
        id_[{o, f}] = static_cast<int>(parent_.size());
        parent_.push_back(static_cast<int>(parent_.size()));
      }
      const auto tie = [&](const pattern& pat, int v) {
        for (int d = 0; d < pat.factors.size(); ++d) {
          const auto [at, fresh] = of_value.try_emplace({v, d}, id_[{o, pat.factors[d]}]);
          if (!fresh) parent_[static_cast<std::size_t>(find(id_[{o, pat.factors[d]}]))] = find(at->second);
        }
      };
      for (int k = 0; k < op.operands.size(); ++k) tie(op.r.operands[k], op.operands[k]);
      for (int k = 0; k < op.results.size(); ++k) tie(op.r.results[k], op.results[k]);
    }
    std::map<int, int> number;
    for (auto& [key, node] : id_) {
      const auto [at, fresh] = number.try_emplace(find(node), static_cast<int>(classes_.size()));
      if (fresh) classes_.emplace_back();
      class_[key] = at->second;
    }
    describe(p);
  }

  int size() const { return static_cast<int>(classes_.size()); }
  const info& operator[](int c) const { return classes_[static_cast<std::size_t>(c)]; }

  /// The factor of an operation that belongs to a class, or -1. Of two (queries and keys of one sequence) the first
  /// that stands in the first operand: what meets the other must then be whole, and is gathered.
  int factor_of(int operation_id, int c) const {
    const rule& r = g_.at(operation_id).r;
    int found = -1, many = 0;
    for (int f = 0; f < r.factors.size(); ++f)
      if (class_.at({operation_id, f}) == c) ++many, found = f;
    if (many < 2) return found;
    for (signed char f : r.operands[0].factors)
      if (class_.at({operation_id, f}) == c) return f;
    return found;
  }
  bool is_twice(int operation_id, int c) const {
    int many = 0;
    for (int f = 0; f < g_.at(operation_id).r.factors.size(); ++f) many += class_.at({operation_id, f}) == c;
    return many > 1;
  }

 private:
  int find(int x) {
    while (parent_[static_cast<std::size_t>(x)] != x) x = parent_[static_cast<std::size_t>(x)];
    return x;
  }

  void describe(const part& p) {
    std::vector<int> stands(classes_.size()), reduced_by_anchor(classes_.size());
    for (int o : p.forward) {
      const operation& op = g_.at(o);
      const bool anchor = std::find(p.anchors.begin(), p.anchors.end(), o) != p.anchors.end();
      std::set<int> seen;
      for (int f = 0; f < op.r.factors.size(); ++f) {
        const int c = class_.at({o, f});
        info& i = classes_[static_cast<std::size_t>(c)];
        if (!seen.insert(c).second) i.twice = true;
        i.whole = i.whole || op.r.factors[f].whole;
        i.parallel = i.parallel && (op.r.is_parallel(f) || op.r.factors[f].scan);
        ++stands[static_cast<std::size_t>(c)];
        if (anchor && op.r.is_reduction(f)) ++reduced_by_anchor[static_cast<std::size_t>(c)];
        if (i.label.empty()) i.label = factor_name(g_, op, f);
        for (const pattern& pat : op.r.operands)  // the factor before it in the same written dimension represents it
          for (int d = 1; d < pat.factors.size(); ++d)
            if (pat.factors[d] == f && pat.group[d] == pat.group[d - 1] && !op.r.factors[pat.factors[d - 1]].whole &&
                op.r.is_reduction(f) == op.r.is_reduction(pat.factors[d - 1]))
              i.minor = i.minor || op.r.is_reduction(f);
      }
    }
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      classes_[c].inner = reduced_by_anchor[c] > 0 && reduced_by_anchor[c] == stands[c];
      if (classes_[c].label.empty()) classes_[c].label = name("dim");
    }
  }

  const graph& g_;
  std::map<std::pair<int, int>, int> id_, class_;  // (operation, factor)
  std::vector<int> parent_;
  std::vector<info> classes_;
};

}  // namespace cfp
