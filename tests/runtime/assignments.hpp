// Programs whose operations each split what a test says, trained a step on ranks.
#pragma once

#include "counted.hpp"

#include <cfp/backend/threads.hpp>
#include <cfp/model/training.hpp>
#include <cfp/program/lower.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace assignment_tests {

using namespace cfp;

inline mesh_shape mesh_of(const std::vector<int>& sizes) {
  static constexpr const char* names[] = {"x", "y", "z", "w"};
  mesh_shape m;
  for (int s : sizes) m.axes.push({name(names[m.rank()]), s});
  return m;
}

/// Largest difference, in shares of the largest number or of `least`.
inline double apart(const std::vector<double>& a, const std::vector<double>& b, double least = 1e-30) {
  double largest = 0, scale = least;
  for (std::size_t i = 0; i < a.size(); ++i) {
    scale = std::max(scale, std::abs(a[i]));
    largest = std::max(largest, std::isnan(a[i] - b[i]) ? 1e30 : std::abs(a[i] - b[i]));
  }
  return largest / scale;
}

/// What an axis may be assigned: no factor or one, or, where that is linear, nothing but sums.
inline int least_choice(const operation& o) {
  return o.op->linear == linearity::all ? assignment::partial : assignment::none;
}

/// Every assignment an operation admits.
inline std::vector<assignment> admitted(const operation& o, const mesh_shape& mesh) {
  std::vector<assignment> all{{}}, kept;
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    std::vector<assignment> more;
    for (assignment a : all)
      for (int f = least_choice(o); f < o.r.factors.size(); ++f) {
        a.factor[axis] = static_cast<signed char>(f);
        more.push_back(a);
      }
    all = more;
  }
  for (const assignment& a : all)
    if (admissible(o.r, o.op->linear, o.sizes, a, mesh)) kept.push_back(a);
  return kept;
}

/// One of them, drawn axis by axis.
inline assignment some_admitted(std::mt19937& random, const operation& o, const mesh_shape& mesh) {
  assignment out;
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    std::vector<assignment> choices;
    for (int f = least_choice(o); f < o.r.factors.size(); ++f) {
      out.factor[axis] = static_cast<signed char>(f);
      if (admissible(o.r, o.op->linear, o.sizes, out, mesh)) choices.push_back(out);
    }
    out = choices[random() % choices.size()];  // to split nothing is always one
  }
  return out;
}

inline std::string words(const operation& o, const assignment& a, const mesh_shape& mesh) {
  std::string s(o.op->label);
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    const int f = a.factor[axis];
    s += " " + std::string(mesh.axes[axis].label.view()) + ":";
    s += f >= 0 ? std::string(o.r.factors[f].label.view()) : f == assignment::partial ? "partial" : "-";
  }
  return s;
}

/// The assignment of one forward operation, and by the names of the factors that of its gradient; weights and
/// what is added for them rest replicated, or as the operation needs them.
inline sharding split_around(const graph& g, int forward, const assignment& a, const mesh_shape& mesh, bool by_need) {
  sharding s = sharding::replicated(g);
  s.assigned[static_cast<std::size_t>(forward)] = a;
  const rule& r = g.at(forward).r;
  for (int i = 0; i < g.size(); ++i) {
    const operation& o = g.at(i);
    assignment& mine = s.assigned[static_cast<std::size_t>(i)];
    for (int axis = 0; axis < mesh.rank(); ++axis) {
      const int f = a.factor[axis];
      if (o.origin == forward && f >= 0) mine.factor[axis] = static_cast<signed char>(o.r.find(r.factors[f].label));
      const int k = g.at(forward).operands.find(o.hub);
      if (by_need && o.hub >= 0 && k >= 0 && f >= 0)
        mine.factor[axis] = static_cast<signed char>(r.operands[k].dim_of(f));
    }
  }
  return s;
}

inline program lowered(const graph& g, const mesh_shape& mesh, const sharding& s, long real_bytes = sizeof(double)) {
  program p = lower(g, mesh, s, all_operations(g), real_bytes);
  plan_memory(p);
  return p;
}

struct outcome {
  std::vector<double> loss{};                         // by rank
  std::vector<std::vector<double>> after{}, slope{};  // per weight: after one step, and its gradient
  std::vector<collective_count> sent{};               // by rank
};

/// The first moment after one step is half the gradient.
inline training one_step_of(double epsilon = 1e-8) {
  training o;
  o.rate = 0.01;
  o.beta1 = 0.5;
  o.epsilon = epsilon;
  return o;
}

inline std::vector<int> weights_of(const graph& g) {
  std::vector<int> ids;
  for (int v = 0; v < g.value_count(); ++v)
    if (g[v].role == value_role::weight && g[v].producer < 0) ids.push_back(v);
  return ids;
}

/// A step of each of these programs from the same weights, one after another in one job.
inline std::vector<outcome> run(backend& on, const std::vector<program>& programs, const graph& g) {
  const auto ranks = static_cast<std::size_t>(on.mesh().devices());
  const std::vector<int> ids = weights_of(g);
  std::vector<int> moments;
  outcome empty;
  empty.loss.resize(ranks);
  empty.sent.resize(ranks);
  for (int v : ids) {
    moments.push_back(g.find(std::string(g[v].label.view()) + ".exp_avg"));
    empty.after.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
    empty.slope.emplace_back(static_cast<std::size_t>(elements(g[v].shape)));
  }
  std::vector<outcome> out(programs.size(), empty);
  on.run([&](rank& r) {
    const auto me = static_cast<std::size_t>(r.number());
    for (std::size_t p = 0; p < programs.size(); ++p) {
      r.reset_counted();
      const auto e = r.load(programs[p], g, 17);
      e->step(1, 1);
      out[p].loss[me] = e->loss();
      out[p].sent[me] = counted(r);
      for (std::size_t w = 0; w < ids.size(); ++w) {
        e->collect(ids[w], std::span(out[p].after[w]));
        if (moments[w] >= 0) e->collect(moments[w], std::span(out[p].slope[w]));
      }
    }
  });
  for (outcome& o : out)
    for (auto& s : o.slope)
      for (double& x : s) x *= 2;
  return out;
}
inline outcome run(backend& on, const program& p, const graph& g) { return run(on, std::vector<program>{p}, g)[0]; }

}  // namespace assignment_tests
