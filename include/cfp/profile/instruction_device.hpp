// A device that says how long single instructions take on it.
#pragma once

#include <cfp/program/program.hpp>

#include <functional>
#include <optional>
#include <string>

namespace cfp::inline v0_1 {

/// `gpu_here()` (session/gpus.hpp) is one. Runs instructions that do not communicate, in the place of any rank.
struct instruction_device {
  std::string name;
  std::function<std::optional<double>(const instruction&, const program&, const graph&)> ms{};  ///< none: cannot run
};

}  // namespace cfp
