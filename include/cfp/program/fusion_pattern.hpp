// Which operators one kernel computes together, and how they hang together.
#pragma once

#include <cfp/program/program.hpp>

#include <functional>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1 {

/// One operator of a pattern, and where its operands come from.
struct fusion_part {
  const op_info* op = nullptr;   ///< null: any product
  list<int, max_operands> from;  ///< n: what comes from outside and is called n; ~k: the first result of part k
  bool (*is)(const operation&) = nullptr;  ///< what else the operator must be; none: anything
};

/// Operators in the order of the program. Parts from `second` on (0: none) are an instruction of their own, later: of
/// what the first one computes it may read only what `needs` names, and computes the rest again.
struct fusion_pattern {
  std::string_view label;
  std::vector<fusion_part> parts;
  int second = 0;
  std::vector<int>
      needs{};  ///< numbers as in `from`; of a single instruction, results that are stored whether they are read or not
  std::vector<int> stores{};  ///< parts whose results can be stored; none: all of the last instruction, and what is
                              ///< needed of the first
  std::function<bool(const program&, const graph&, const fusion&)>
      fits{};  ///< whether there is a kernel for what was found; none: always
};

}  // namespace cfp
