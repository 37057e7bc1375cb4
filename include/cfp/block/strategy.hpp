// Strategies of a part: per mesh axis the dimension it splits, and for a contraction's inner dimension where the owed
// reduction goes. From a strategy the assignment of every operation of the part follows.
#pragma once

#include <cfp/block/axis_choice.hpp>
#include <cfp/block/dimension_classes.hpp>
#include <cfp/core/explain.hpp>
#include <cfp/model/follow.hpp>
#include <cfp/model/sharding.hpp>

namespace cfp::inline v0_1 {

/// All strategies of a part on a mesh, and how each becomes assignments.
class strategy_space {
 public:
  /// On axis `held`, if it is one, only `choice`.
  strategy_space(const graph& g, const part& p, const mesh_shape& mesh,
                 axis_choice::rest_t furthest = axis_choice::scattered, int held = -1, axis_choice choice = {})
      : g_(g), part_(p), mesh_(mesh), classes_(g, p) {
    std::vector<axis_choice> choices(1);
    bool linear_tail = true;
    for (int o : p.forward)
      if (std::find(p.anchors.begin(), p.anchors.end(), o) == p.anchors.end())
        linear_tail = linear_tail && g.at(o).op->linear == linearity::all;
    if (p.anchors.empty() && linear_tail) choices.push_back({axis_choice::none, axis_choice::partial});
    for (int c = 0; c < classes_.size(); ++c) {
      const auto& i = classes_[c];
      const bool free = !i.twice && !i.whole && (p.anchors.empty() || i.parallel);
      if (free) choices.push_back({c, axis_choice::none});
      else if (i.inner && !i.whole && i.minor)
        dropped.push_back(std::string(i.label.view()) + ": a minor factor, represented by the major one");
      else if (i.inner && !i.whole) {
        choices.push_back({c, axis_choice::none});
        for (int t = 0; t < classes_.size(); ++t)
          if (classes_[t].parallel && !classes_[t].twice && !classes_[t].whole) choices.push_back({c, t});
        if (linear_tail) choices.push_back({c, axis_choice::partial});
      } else if (i.twice && !p.anchors.empty() && passes_once(c)) {
        choices.push_back({c, axis_choice::none});
        for (int t = 0; t < classes_.size(); ++t)
          if (t != c && classes_[t].parallel && !classes_[t].twice && !classes_[t].whole && stands_after(c, t))
            choices.push_back({c, t});
      } else {
        dropped.push_back(std::string(i.label.view()) + (i.whole   ? ": must stay whole"
                                                         : i.twice ? ": arrives as two factors"
                                                                   : ": not carried through the block"));
      }
    }
    // Where an axis splits what some weight does not have (batch, sequence), weights may rest split over it.
    for (std::size_t c = 0, n = choices.size(); c < n; ++c)
      if (choices[c].split != axis_choice::none && leaves_a_weight(choices[c].split))
        for (int rest = axis_choice::scattered; rest <= furthest; ++rest) {
          choices.push_back(choices[c]);
          choices.back().rest = static_cast<axis_choice::rest_t>(rest);
        }
    std::vector<strategy> open(1);
    for (int a = 0; a < mesh.rank(); ++a) {
      std::vector<strategy> next;
      for (const strategy& s : open)
        for (const axis_choice& c : choices) {
          if ((mesh.size(a) == 1 && !(c == axis_choice{})) || (a == held && !(c == choice))) continue;
          strategy longer = s;
          longer.push(c);
          next.push_back(longer);
        }
      open = std::move(next);
    }
    for (const strategy& s : open) {
      bool fits = true;
      for (int o : p.forward)
        fits = fits && admissible(g.at(o).r, g.at(o).op->linear, g.at(o).sizes, forward(o, s), mesh);
      if (fits) all.push_back(s);
      else refuse(s);
    }
  }

  std::vector<strategy> all;
  std::vector<std::string> dropped;  ///< what was left out before any measurement, and why
  std::set<std::string> uneven;      ///< of those the splits that do not divide, a sentence each

  const dimension_classes& classes() const { return classes_; }

  /// "data=heads", "data=hidden>sequence model=-"
  std::string text(const strategy& s) const {
    std::string out;
    for (int a = 0; a < s.size(); ++a) {
      if (a) out += ' ';
      out += mesh_.axes[a].label.view();
      out += '=';
      if (s[a].split == axis_choice::none) out += s[a].target == axis_choice::partial ? "partial" : "-";
      else out += label(s[a].split);
      if (s[a].split == axis_choice::none) continue;
      if (s[a].target == axis_choice::partial) out += ">partial";
      else if (s[a].target >= 0) out.append(1, '>').append(label(s[a].target));
      if (s[a].rest != axis_choice::as_computed)
        out += s[a].rest == axis_choice::scattered ? "/scattered" : "/regathered";
    }
    return out;
  }

  /// Sets the assignments of all operations of the part.
  void assign(const strategy& s, std::vector<assignment>& assigned) const {
    for (int o : part_.operations)
      if (g_.at(o).when == phase::forward) assigned[static_cast<std::size_t>(o)] = forward(o, s);
    follow(g_, mesh_, part_.operations, assigned);
    for (int o : part_.operations)
      if (is_of_matrix(o))
        set_rest(o, s, need(g_, g_.at(o).hub, part_.operations, assigned), assigned[static_cast<std::size_t>(o)]);
  }

 private:
  void refuse(const strategy& s) {
    for (int o : part_.forward) {
      const operation& op = g_.at(o);
      const assignment a = forward(o, s);
      for (int f = 0; f < op.r.factors.size(); ++f) {
        partition p = partition::replicated(1);
        for (int axis = 0; axis < s.size(); ++axis)
          if (a.factor[axis] == f) p.dims[0].push(static_cast<signed char>(axis));
        const long n = pieces(p, 0, mesh_);
        if (op.sizes[f] % n == 0) continue;
        dimensions one;
        const name label = factor_name(g_, op, f);
        one.parts.push(label.view());
        const sentence why = words({sharding_problem::not_divisible, label, op.sizes[f], n}, one, p, mesh_);
        dropped.push_back(text(s) + ": " + why.characters);
        uneven.insert(why.characters);
        return;
      }
    }
    dropped.push_back(text(s) + ": passes a part of a sum, or a dimension that stays together, where it cannot");
  }

  // A dimension that arrives as two factors (a sequence of queries and of keys) may be split as one of them throughout,
  // where that is parallel; what holds the other is gathered. Or (a target) something else is split from there on:
  // all-to-all.
  bool passes_once(int c) const {
    for (int o : part_.forward)
      if (const int f = classes_.factor_of(o, c);
          f >= 0 && (!g_.at(o).r.is_parallel(f) || g_.at(o).r.stays_together(f)))
        return false;
    return true;
  }
  // Whether an operation takes the dimension twice, or depends on one of the part that does.
  bool after(int o, int c) const {
    if (classes_.is_twice(o, c)) return true;
    for (int v : g_.at(o).operands)
      if (const int from = g_[v].producer;
          from >= 0 && std::binary_search(part_.forward.begin(), part_.forward.end(), from) && after(from, c))
        return true;
    return false;
  }
  // Whether every operation from there on has a dimension that could be split instead.
  bool stands_after(int c, int target) const {
    for (int o : part_.forward)
      if (after(o, c) && classes_.factor_of(o, target) < 0) return false;
    return true;
  }

  // What a step does for a matrix of the part.
  bool is_of_matrix(int o) const {
    const operation& op = g_.at(o);
    return (op.when == phase::update || op.op->body == op_body::accumulate) && !g_[op.hub].group.empty() &&
           g_[op.hub].group.back() > 0;
  }
  bool leaves_a_weight(int c) const {
    for (int o : part_.operations) {
      if (!is_of_matrix(o)) continue;
      bool split = false;
      for (int user : part_.forward)
        if (const int k = g_.at(user).operands.find(g_.at(o).hub); k >= 0)
          if (const int f = classes_.factor_of(user, c); f >= 0 && g_.at(user).r.operands[k].dim_of(f) >= 0)
            split = true;
      if (!split) return true;
    }
    return false;
  }

  // Splits what a step does for a matrix, which forward needs as `needed`, over the axes that let weights rest so:
  // along one dimension, so that one collective over all of them serves, or along the first that is whole and divides,
  // else one that an axis before it splits. Gradients are added up as parts of sums, except of weights that are
  // gathered again.
  void set_rest(int update, const strategy& s, const partition& needed, assignment& a) const {
    const operation& o = g_.at(update);
    const extents& shape = g_[o.hub].shape;
    unsigned rests = 0;  // axes along which it is split here, a bit each
    int split[max_axes];
    for (int axis = 0; axis < s.size(); ++axis) split[axis] = needed.dim_of(axis);
    for (int axis = 0; axis < s.size(); ++axis) {
      if (s[axis].rest == axis_choice::as_computed || split[axis] >= 0) continue;
      if (o.when != phase::update && s[axis].rest != axis_choice::regathered) continue;
      int best = -1, taken_by = -2;
      const auto rank = [&](int last) { return last >= 0 && (rests >> last & 1) != 0 ? 2 : last < 0 ? 1 : 0; };
      for (int d = 0; d < shape.size(); ++d) {
        long n = mesh_.size(axis);
        int last = -1;  // axis that splits it already
        for (int other = 0; other < s.size(); ++other)
          if (split[other] == d) n *= mesh_.size(other), last = other;
        if (shape[d] % n != 0 || last > axis) continue;
        if (best < 0 || rank(last) > rank(taken_by)) best = d, taken_by = last;
      }
      if (best < 0) continue;
      split[axis] = best;
      a.factor[axis] = static_cast<signed char>(hub_factor_of(o, best));
      rests |= 1U << axis;
      a.regather = a.regather || s[axis].rest == axis_choice::regathered;
    }
  }

  std::string_view label(int c) const { return classes_[c].label.view(); }

  assignment forward(int o, const strategy& s) const {
    assignment a;
    const operation& op = g_.at(o);
    for (int axis = 0; axis < s.size(); ++axis) {
      const axis_choice& c = s[axis];
      if (c.split == axis_choice::none) {
        a.factor[axis] = static_cast<signed char>(c.target);  // parts of sums pass through
        continue;
      }
      const bool turned = classes_[c.split].twice && c.target >= 0 && after(o, c.split);
      int f = classes_.factor_of(o, turned ? c.target : c.split);
      if (f < 0 && c.target == axis_choice::partial)
        f = op.op->linear == linearity::all ? assignment::partial : assignment::none;
      else if (f < 0 && c.target >= 0 && !classes_[c.split].twice) f = classes_.factor_of(o, c.target);
      a.factor[axis] = static_cast<signed char>(f);
    }
    return a;
  }

  const graph& g_;
  const part& part_;
  const mesh_shape& mesh_;
  dimension_classes classes_;
};

}  // namespace cfp
