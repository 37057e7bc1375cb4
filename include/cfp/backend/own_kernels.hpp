// Kernels of operators that are not in the catalogue, as values: what a user's program hands to ranks.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/program/call.hpp>

#include <map>
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

/// What operators that have no kernel are called, by their types.
using kernels_missing = std::map<std::string, std::string>;

/// Those of a graph; `has` says of an operator whether it has a kernel.
template <class Has>
kernels_missing missing_in(const graph& g, const Has& has) {
  kernels_missing out;
  for (const operation& o : g.operations)
    if (o.op->body != op_body::scan && !has(*o.op)) out.emplace(o.op->type, o.op->label);
  return out;
}

/// What is said of them: their names, what `of_one` or `of_many` say, and the line to add, which ends with their types.
inline bad_input said_of(const kernels_missing& operators, const std::string& of_one, const std::string& of_many) {
  std::set<std::string> called;
  std::string names, types;
  for (const auto& [type, label] : operators) {
    if (called.insert(label).second) names += (names.empty() ? "'" : ", '") + label + "'";
    types += (types.empty() ? "" : ", ") + type;
  }
  return bad_input((called.size() == 1 ? "operator " + names + of_one : "operators " + names + of_many) + "<" + types +
                   ">()");
}
inline bad_input host_kernels_missing(const kernels_missing& operators) {
  const std::string line = " not in the catalogue: give the session .kernels = cfp::kernels_of";
  return said_of(operators, " is" + line, " are" + line);
}
inline bad_input gpu_kernels_missing(const kernels_missing& operators) {
  return said_of(operators, " has no kernel for GPUs: add it with kernels.add",
                 " have no kernel for GPUs: add them with kernels.add");
}

}  // namespace cfp
