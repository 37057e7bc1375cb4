// What is thrown where only run time knows that something cannot be: a sentence.
#pragma once

#include <cfp/core/text.hpp>

#include <exception>

namespace cfp::inline v0_1 {

class error : public std::exception {
 public:
  explicit error(const sentence& why) : why_(why) { why_.characters[why_.count] = 0; }
  explicit error(const char* why) {
    say(why_, std::string_view(why));
    why_.characters[why_.count] = 0;
  }
  const char* what() const noexcept override { return why_.characters; }

 private:
  sentence why_;
};

}  // namespace cfp
