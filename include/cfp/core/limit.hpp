// What is thrown at run time where something is longer or larger than its place: the compiler refuses it earlier.
#pragma once

#include <cfp/core/error.hpp>

#include <cstddef>
#include <string_view>

namespace cfp::inline v0_1 {

class limit_reached : public error {
 public:
  explicit limit_reached(const char* why) { add(why); }
  /// "'a_name': has 31 characters, at most 23 fit": the text, as far as there is room for it, behind where it stands
  /// ("main.cpp:41: ").
  limit_reached(std::string_view text, std::size_t length, int most, std::string_view where = {}) {
    add(where);
    add("'");
    add(text.substr(0, most_shown));
    add(text.size() > most_shown ? "...': has " : "': has ");
    add(length);
    add(" characters, at most ");
    add(static_cast<std::size_t>(most));
    add(" fit");
  }
  const char* what() const noexcept override { return why_; }

 private:
  static constexpr std::size_t most_shown = 140;  // of a text; names of tensors fit

  void add(std::string_view more) {
    for (const char c : more)
      if (count_ + 1 < sizeof why_) why_[count_++] = c;
  }
  void add(std::size_t number) {
    if (number >= 10) add(number / 10);
    const char digit = static_cast<char>('0' + number % 10);
    add(std::string_view(&digit, 1));
  }

  char why_[320]{};
  std::size_t count_ = 0;
};

}  // namespace cfp
