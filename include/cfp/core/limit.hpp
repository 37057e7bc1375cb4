// What is thrown at run time where something is longer or larger than its place: the compiler refuses it earlier.
#pragma once

#include <exception>

namespace cfp::inline v0_1 {

class limit_reached : public std::exception {
 public:
  explicit limit_reached(const char* why) : why_(why) {}
  const char* what() const noexcept override { return why_; }

 private:
  const char* why_;
};

}  // namespace cfp
