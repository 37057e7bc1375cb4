// What tells values of a graph apart whatever they are called: what each is computed from, and what is computed from
// it.
#pragma once

#include <cfp/core/spell.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/name_hash.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// Where each value stands in a training graph, one number for each. Equal ones are interchangeable, as far as 64 bits
/// tell. Weights and inputs count by their names; how anything else is called, in which order it was traced and with
/// which scalars (a learning rate) do not matter.
class structural_paths {
 public:
  explicit structural_paths(const graph& g) : from_(g.values.size()), into_(g.values.size()) {
    std::vector<std::uint64_t> rules;
    for (const operation& o : g.operations) rules.push_back(rule_of(o));
    for (int v = 0; v < g.value_count(); ++v)
      if (g[v].producer < 0) at(from_, v) = of_given(g[v]);
    for (int i = 0; i < g.size(); ++i) {
      const operation& o = g.at(i);
      std::uint64_t h = rules[static_cast<std::size_t>(i)];
      for (const int v : o.operands) h = mixed(h, at(from_, v));
      for (int k = 0; k < o.results.size(); ++k) at(from_, o.results[k]) = mixed(h, static_cast<std::uint64_t>(k));
    }
    for (int i = g.size() - 1; i >= 0; --i) {
      const operation& o = g.at(i);
      std::uint64_t h = rules[static_cast<std::size_t>(i)];
      for (const int v : o.results) h = mixed(h, at(into_, v));
      for (const int v : o.operands) h = mixed(h, at(from_, v));
      for (int k = 0; k < o.operands.size(); ++k)  // a sum: the order of what reads it does not matter
        at(into_, o.operands[k]) += mixed(h, static_cast<std::uint64_t>(k));
    }
    for (int v = 0; v < g.value_count(); ++v) all_ += of(v);
  }

  std::uint64_t of(int value) const { return mixed(at(from_, value), at(into_, value)); }
  /// Of the whole graph.
  std::uint64_t all() const { return all_; }

  static constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    std::uint64_t h = a * 0x9e3779b97f4a7c15ull + b;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    return h ^ (h >> 31);
  }

 private:
  using numbers = std::vector<std::uint64_t>;
  static std::uint64_t& at(numbers& all, int v) { return all[static_cast<std::size_t>(v)]; }
  static std::uint64_t at(const numbers& all, int v) { return all[static_cast<std::size_t>(v)]; }

  static std::uint64_t of_given(const value& v) {
    std::string text(v.label.view());
    for (const long n : v.shape) text += " " + std::to_string(n);
    return mixed(name_hash(text), static_cast<std::uint64_t>(v.role) * 8 + static_cast<std::uint64_t>(v.type));
  }
  static std::uint64_t rule_of(const operation& o) {
    std::string text(o.op->label);
    text.append(template_arguments(*o.op)).append(" ").append(spell(o.r).view());
    for (const long n : o.sizes) text += " " + std::to_string(n);
    return mixed(name_hash(text), static_cast<std::uint64_t>(o.when));
  }

  numbers from_, into_;
  std::uint64_t all_ = 0;
};

}  // namespace cfp
