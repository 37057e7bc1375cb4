// An error whose sentence is as long as it is. Not among what `cfp/core.hpp` includes: the standard library's strings
// are most of what that would cost.
#pragma once

#include <cfp/core/error.hpp>

#include <stdexcept>
#include <string>

namespace cfp::inline v0_1 {

class long_error : public error {
 public:
  explicit long_error(const std::string& why) : why_(why) {}
  const char* what() const noexcept override { return why_.what(); }

 private:
  std::runtime_error why_;  // copies of it do not throw
};

}  // namespace cfp
