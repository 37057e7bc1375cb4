// What is thrown where a model, as it is traced or planned, has operators that do not fit what they are given.
#pragma once

#include <cfp/core/error.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

class shape_error : public error {
 public:
  explicit shape_error(const sentence& why) : why_(why) { why_.characters[why_.count] = 0; }
  explicit shape_error(const char* why) {
    say(why_, std::string_view(why));
    why_.characters[why_.count] = 0;
  }
  const char* what() const noexcept override { return why_.characters; }

 private:
  sentence why_;
};

}  // namespace cfp
