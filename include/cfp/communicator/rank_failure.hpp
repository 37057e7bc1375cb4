// The errors of ranks.
#pragma once

#include <cfp/core/long_error.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// What stopped one rank. A consequence is brief: it only says in which collective the first error met it.
struct rank_error {
  int rank = 0;
  std::string message;
  bool consequence = false;
};

/// One or more ranks failed. what() has a line for each, causes first.
class rank_failure : public long_error {
 public:
  explicit rank_failure(std::vector<rank_error> errors)
      : long_error(text(errors)), errors_(std::make_shared<const std::vector<rank_error>>(std::move(errors))) {}

  /// Each rank at most once: of threads in order of time, of processes causes first, then by rank.
  const std::vector<rank_error>& errors() const noexcept { return *errors_; }

 private:
  static std::string text(const std::vector<rank_error>& errors) {
    std::string s;
    for (const rank_error& e : errors) s += (s.empty() ? "" : "\n  then ") + e.message;
    return s;
  }

  std::shared_ptr<const std::vector<rank_error>> errors_;  // shared: copying an exception must not throw
};

namespace detail {

/// What `fail` of a world records.
inline rank_error failure(int rank, const std::string& what, bool consequence) {
  return {rank, "rank " + std::to_string(rank) + (consequence ? " " : " failed: ") + what, consequence};
}

}  // namespace detail

}  // namespace cfp
