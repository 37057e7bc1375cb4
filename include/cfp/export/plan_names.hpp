// What a plan's file calls decisions, choices and tensors: as people do, and where that may mean several by what they
// are in the graph.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/model/structural_path.hpp>
#include <cfp/plan/realise.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string hexadecimal(std::uint64_t x) {
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(x));
  return out;
}

// "a", "b #0123456789abcdef", "b #fedcba9876543210". Those that are alike in everything are counted.
template <class Path>
std::vector<std::string> told_apart(std::vector<std::string> names, const Path& path) {
  std::map<std::string, int> alike;
  for (const std::string& n : names) ++alike[n];
  std::set<std::string> taken;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (alike[names[i]] > 1) names[i] += " #" + hexadecimal(path(i));
    const std::string first = names[i];
    for (int k = 2; !taken.insert(names[i]).second; ++k) names[i] = first + " (" + std::to_string(k) + ")";
  }
  return names;
}

}  // namespace detail

/// The names of one training graph and its decisions, which must outlive this.
class plan_names {
 public:
  plan_names(const graph& g, const decision_graph& d) : g_(g), d_(d), paths_(g) {
    std::vector<std::string> titles, labels;
    for (const decision& n : d.nodes) titles.push_back(decision_title(n));
    for (const value& v : g.values) labels.push_back(std::string(v.label.view()));
    decides_ = detail::told_apart(std::move(titles), [&](std::size_t n) { return path_of(d.nodes[n]); });
    tensors_ = detail::told_apart(std::move(labels), [&](std::size_t v) { return paths_.of(static_cast<int>(v)); });
  }

  const std::vector<std::string>& decisions() const { return decides_; }
  const std::string& tensor(int value) const { return tensors_[static_cast<std::size_t>(value)]; }

  /// Of the choices of a decision.
  std::vector<std::string> choices(std::size_t of) const {
    const decision& n = d_.nodes[of];
    return detail::told_apart(n.names, [&](std::size_t c) { return meaning(n, c); });
  }
  /// Of all operators, and how they are joined.
  std::string graph_path() const { return detail::hexadecimal(paths_.all()); }

 private:
  std::uint64_t of_operation(int o) const { return paths_.of(g_.at(o).results[0]); }
  std::uint64_t path_of(const decision& n) const {
    std::uint64_t out = n.kind == decision::forms_of_tensor ? paths_.of(n.index) : 0;
    for (const int o : n.operations) out += of_operation(o);
    return out;
  }
  // What a choice splits in every operation, and how it leaves a tensor.
  std::uint64_t meaning(const decision& n, std::size_t c) const {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < n.operations.size() && c < n.assigned.size(); ++i) {
      const operation& o = g_.at(n.operations[i]);
      const assignment& a = n.assigned[c][i];
      std::string text = a.regather ? "regathered" : a.recompute ? "recomputed" : a.on_host ? "on host" : "";
      if (a.weight_on_host) text += ", weight too";
      for (const signed char f : a.factor)
        text.append(" ").append(f < 0 ? std::to_string(f) : std::string(o.r.factors[f].label.view()));
      out += structural_paths::mixed(of_operation(n.operations[i]), name_hash(text));
    }
    if (c < n.forms.size())
      for (const partition& p : n.forms[c]) {
        std::string text;
        for (const auto& axes : p.dims) {
          text += '|';
          for (const signed char a : axes) text += std::to_string(a) + " ";
        }
        for (const partition::debt& d : p.partial) text += d.owed ? std::to_string(static_cast<int>(d.combine)) : "-";
        out = structural_paths::mixed(out, name_hash(text));
      }
    return out;
  }

  const graph& g_;
  const decision_graph& d_;
  structural_paths paths_;
  std::vector<std::string> decides_, tensors_;
};

}  // namespace cfp
