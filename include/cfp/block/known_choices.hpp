// Choices of decisions, held once where they are equal.
#pragma once

#include <cfp/block/decision.hpp>
#include <cfp/block/operation_kinds.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// What a decision can choose from, as it is found out.
struct choice_set {
  std::vector<std::vector<assignment>> assigned;
  std::vector<strategy> strategies;
  std::vector<list<partition, 2>> forms;
  std::vector<std::string> names;
  std::vector<keeping> kept{};
  std::vector<std::string> dropped{};  ///< what was left out, and why
};

/// Of the decisions of one graph.
class known_choices {
 public:
  explicit known_choices(const graph& g) : kinds_(g) {}

  /// How a key begins: equal for decisions of one kind on equal operations.
  std::string key(const decision& d) {
    return std::to_string(static_cast<int>(d.kind)) + ' ' + std::to_string(kinds_(d.operations)) + ' ';
  }
  /// Gives a decision the choices of those with an equal key, which `find` finds out for the first of them. Returns
  /// what was left out.
  template <class Find>
  const std::vector<std::string>& give(decision& d, std::string key, Find&& find) {
    const auto [at, fresh] = known_.try_emplace(std::move(key));
    shared& known = at->second;
    if (fresh) {
      choice_set found = find();
      known = {std::move(found.assigned), std::move(found.strategies), std::move(found.forms),
               std::move(found.names),    std::move(found.kept),       std::move(found.dropped)};
    }
    d.assigned = known.assigned;
    d.strategies = known.strategies;
    d.forms = known.forms;
    d.names = known.names;
    d.kept = known.kept;
    return known.dropped;
  }

 private:
  struct shared {
    shared_list<std::vector<assignment>> assigned;
    shared_list<strategy> strategies;
    shared_list<list<partition, 2>> forms;
    shared_list<std::string> names;
    shared_list<keeping> kept;
    std::vector<std::string> dropped;
  };

  operation_kinds kinds_;
  std::map<std::string, shared> known_;
};

}  // namespace cfp::detail
