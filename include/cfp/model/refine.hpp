// Refinement: where two rules cut one dimension differently (a fused projection, then "(three h d)"), the dimension
// becomes its common factors, in the whole graph, so that every split is the split of one dimension.
#pragma once

#include <cfp/core/cut.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/model/trace.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// Cuts of a dimension: sizes of its minor ends, ascending, each dividing the next.
using cut_list = list<long, max_dims>;

// Whose rule cuts which dimension.
struct cut_place {
  const value& of;
  int dimension = 0;
  const source_place& at;
};

constexpr bool add_cut(cut_list& cuts, long c, long size, const cut_place& in, shape_problem& problem) {
  if (c <= 1 || c >= size || cuts.contains(c) || problem.what != nullptr) return false;
  int at = 0;
  while (at < cuts.size() && cuts[at] < c) ++at;
  cuts.insert(at, c);
  for (int i = 0; i < cuts.size(); ++i) {
    const long next = i + 1 < cuts.size() ? cuts[i + 1] : size;
    if (next % cuts[i] != 0)
      problem = {"rules cut a dimension in ways that do not align",
                 in.of.label,
                 in.of.dims[in.dimension],
                 cuts[i],
                 next,
                 {},
                 in.at};
  }
  return true;
}

constexpr int atoms(const cut_list& cuts) { return cuts.size() + 1; }
constexpr long atom_size(const cut_list& cuts, long size, int k) {  // k = 0 is the major one
  const int n = cuts.size();
  const long high = k == 0 ? size : cuts[n - k];
  const long low = k == n ? 1 : cuts[n - 1 - k];
  return high / low;
}

struct refiner {
  graph g;
  shape_problem problem{};
  std::vector<list<cut_list, max_dims>> of_value;
  std::vector<list<cut_list, max_factors>> of_operation;

  template <class F>
  static constexpr void each_pattern(operation& o, F&& f) {
    for (int i = 0; i < o.operands.size(); ++i) f(o.r.operands[i], o.operands[i]);
    for (int i = 0; i < o.results.size(); ++i) f(o.r.results[i], o.results[i]);
  }

  constexpr explicit refiner(const graph& from) : g(from) {
    for (operation& o : g.operations) each_pattern(o, [&](pattern& p, int) { drop_ones(o.sizes, p); });
    for (const value& v : g.values) {
      of_value.push_back({});
      for (int d = 0; d < v.rank(); ++d) of_value.back().push({});
    }
    for (const operation& o : g.operations) {
      of_operation.push_back({});
      for (int f = 0; f < o.r.factors.size(); ++f) of_operation.back().push({});
    }
  }

  constexpr bool exchange(operation& o, list<cut_list, max_factors>& factors) {
    bool changed = false;
    each_pattern(o, [&](pattern& p, int id) {
      const value& v = g[id];
      auto& cuts = of_value[static_cast<std::size_t>(id)];
      for (int d = 0; d < v.rank(); ++d) {
        const cut_place here{v, d, g[o.results[0]].at};
        long minor = 1;
        for (int k = p.factors.size() - 1; k >= 0; --k) {
          if (p.group[k] != d) continue;
          const int f = p.factors[k];
          changed |= add_cut(cuts[d], minor, v.shape[d], here, problem);
          for (long c : factors[f]) changed |= add_cut(cuts[d], c * minor, v.shape[d], here, problem);
          const long end = minor * o.sizes[f];
          for (long c : cut_list(cuts[d]))
            if (c > minor && c < end) changed |= add_cut(factors[f], c / minor, o.sizes[f], here, problem);
          minor = end;
        }
      }
    });
    return changed;
  }

  constexpr graph run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t i = 0; i < g.operations.size(); ++i) changed |= exchange(g.operations[i], of_operation[i]);
      for (std::size_t i = g.operations.size(); i-- > 0;) changed |= exchange(g.operations[i], of_operation[i]);
    }
    for (std::size_t i = 0; i < g.values.size(); ++i) rewrite(g.values[i], of_value[i]);
    std::vector<list<bool, max_factors>> named(g.operations.size());
    for (std::size_t i = 0; i < g.operations.size(); ++i) rewrite(g.operations[i], of_operation[i], named[i]);
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (std::size_t i = 0; i < g.operations.size(); ++i) spread_names(g.operations[i], named[i]);
      for (std::size_t i = g.operations.size(); i-- > 0;) spread_names(g.operations[i], named[i]);
    }
    for (value& v : g.values)
      for (name& n : v.dims)
        if (n.empty()) n = name("part");
    return std::move(g);
  }

  static constexpr void rewrite(value& v, const list<cut_list, max_dims>& cuts) {
    value out = v;
    out.shape = {};
    out.dims = {};
    out.group = {};
    for (int d = 0; d < v.rank(); ++d)
      for (int k = 0; k < atoms(cuts[d]); ++k) {
        out.shape.push(atom_size(cuts[d], v.shape[d], k));
        out.dims.push(atoms(cuts[d]) == 1 ? v.dims[d] : name{});
        out.group.push(v.group[d]);
      }
    v = out;
  }

  // `named[f]`: the new factor was written by name inside a compound dimension of this rule.
  constexpr void rewrite(operation& o, const list<cut_list, max_factors>& cuts, list<bool, max_factors>& named) {
    list<int, max_factors> parts, first;
    factor_sizes sizes, begins, wholes;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      parts.push(atoms(cuts[f]));
      if (o.r.factors[f].one_hot && parts[f] > 1 && problem.what == nullptr)
        problem = {"an indexed factor cannot be cut into this many parts",
                   g[o.results[0]].label,
                   o.r.factors[f].label,
                   parts[f],
                   1,
                   {},
                   g[o.results[0]].at};
      if (parts[f] > 1 && (o.first_of(f) != 0 || o.whole_of(f) != o.sizes[f]) && problem.what == nullptr)
        problem = {"a piece of a dimension cannot be cut",
                   g[o.results[0]].label,
                   o.r.factors[f].label,
                   o.sizes[f],
                   o.whole_of(f),
                   {},
                   g[o.results[0]].at};
      for (int k = 0; k < parts[f]; ++k) {
        sizes.push(atom_size(cuts[f], o.sizes[f], k));
        begins.push(parts[f] > 1 ? 0 : o.first_of(f));
        wholes.push(parts[f] > 1 ? sizes.back() : o.whole_of(f));
        named.push(false);
      }
    }
    const rule cut = cut_factors(o.r, parts, first);
    const auto find_named = [&](const pattern& p) {
      for (int i = 0; i < p.factors.size(); ++i) {
        int members = 0;
        for (signed char other : p.group) members += other == p.group[i];
        if (members > 1 && parts[p.factors[i]] == 1) named[first[p.factors[i]]] = true;
      }
    };
    for (const pattern& p : o.r.operands) find_named(p);
    for (const pattern& p : o.r.results) find_named(p);
    o.r = cut;
    o.sizes = sizes;
    if (!o.first.empty()) o.first = begins, o.whole = wholes;
  }

  constexpr void spread_names(operation& o, const list<bool, max_factors>& named) {
    for (int f = 0; f < o.r.factors.size(); ++f) {
      name label = named[f] ? o.r.factors[f].label : name{};
      each_pattern(o, [&](pattern& p, int id) {
        const int d = p.dim_of(f);
        if (d >= 0 && label.empty()) label = g[id].dims[d];
      });
      each_pattern(o, [&](pattern& p, int id) {
        const int d = p.dim_of(f);
        if (d >= 0 && g[id].dims[d].empty()) g[id].dims[d] = label;
      });
    }
  }
};

}  // namespace detail

/// The same graph with every compound dimension cut into common factors; rules no longer regroup anything.
constexpr graph refine(const graph& traced) {
  detail::refiner r(traced);
  graph g = r.run();
  if (r.problem.what != nullptr) throw shape_error(words(r.problem, r.problem.at));
  return g;
}

}  // namespace cfp
