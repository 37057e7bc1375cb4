// Which instructions of a program can become parts of a fusion.
#pragma once

#include <cfp/program/program.hpp>

#include <unordered_map>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Operators of the instructions that parts of a fusion can be. Those that compute nothing, or several operators, are
/// none.
struct fusable {
  std::vector<const op_info*> op;                               ///< of each instruction, or nullptr
  std::unordered_map<const op_info*, std::vector<int>> with{};  ///< instructions that had an operator, in order
  std::vector<int> products{};

  fusable(const program& p, const graph& g) : op(p.code.size()) {
    for (std::size_t i = 0; i < p.code.size(); ++i) {
      const instruction& c = p.code[i];
      if (c.kind != instruction::compute || c.nothing || c.fusion >= 0) continue;
      op[i] = g.at(c.op).op;
      with[op[i]].push_back(static_cast<int>(i));
      if (op[i]->body == op_body::product) products.push_back(static_cast<int>(i));
    }
  }
  /// Whether an instruction is such a one; nullptr: any product.
  bool is(int i, const op_info* wanted) const {
    const op_info* const has = op[static_cast<std::size_t>(i)];
    return has != nullptr && (wanted == nullptr ? has->body == op_body::product : has == wanted);
  }
  /// All that were, in order.
  const std::vector<int>& all(const op_info* wanted) const {
    static const std::vector<int> none;
    if (wanted == nullptr) return products;
    const auto at = with.find(wanted);
    return at == with.end() ? none : at->second;
  }
};

}  // namespace cfp::detail
