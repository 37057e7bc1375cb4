// Kernels of operators that are not in the catalogue, as values: what a user's program hands to ranks.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/program/call.hpp>

#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// One operator's kernels on the host, by what numbers are stored as. `kernels_of` (backend/host/kernels_of.hpp) makes
/// them.
struct own_kernel {
  const op_info* op = nullptr;
  void (*in_float64)(const call&) = nullptr;
  void (*in_float32)(const call&) = nullptr;
  void (*in_bfloat16)(const call&) = nullptr;
};

using own_kernels = std::vector<own_kernel>;

/// What is said where operators have no kernel: the line to add.
inline bad_input own_kernels_missing(const std::set<std::string>& operators) {
  std::string names, types;
  for (const std::string& op : operators) {
    names += (names.empty() ? "'" : ", '") + op + "'";
    types += (types.empty() ? "" : ", ") + op + "_t";
  }
  return bad_input((operators.size() == 1 ? "operator " : "operators ") + names +
                   (operators.size() == 1 ? " is" : " are") +
                   " not in the catalogue: give the session .kernels = cfp::kernels_of<" + types + ">()");
}

}  // namespace cfp
