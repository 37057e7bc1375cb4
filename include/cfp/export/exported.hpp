// A plan in another program's form, and what that program cannot say of it.
#pragma once

#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct exported {
  std::string text;
  /// What is said otherwise than the plan has it, a sentence each; the text has them as comments where it can.
  std::vector<std::string> approximations;
};

namespace detail {

/// The sentences as comments, each behind `mark`.
inline std::string as_comments(const std::vector<std::string>& sentences, const std::string& mark) {
  std::string out;
  for (const std::string& s : sentences) out.append(mark).append(s).append(1, '\n');
  return out;
}

/// "3 tensors, the first 'x'", or "1 tensor, 'x'", of some names.
inline std::string counted(const std::vector<std::string>& names, const std::string& what) {
  return std::to_string(names.size()) + " " + what + (names.size() > 1 ? "s, the first '" : ", '") + names.front() +
         "'";
}

}  // namespace detail

}  // namespace cfp
