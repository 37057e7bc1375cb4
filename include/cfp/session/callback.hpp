// What a caller's function says of whether to go on, where a rank calls it: if it throws that is no failure of the
// rank.
#pragma once

#include <exception>

namespace cfp::inline v0_1::detail {

/// Stops where the function says so or throws, and keeps what it threw until all ranks have come to an end.
class callback {
 public:
  /// Whether to go on. What has thrown is not called again.
  template <class Function, class... What>
  bool go_on(const Function& tell, const What&... what) {
    if (!thrown_) try {
        enough_ = !tell(what...) || enough_;
      } catch (...) {
        thrown_ = std::current_exception();
        enough_ = true;
      }
    return !enough_;
  }
  bool enough() const { return enough_; }

  /// Throws what the function threw.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
  bool enough_ = false;
};

}  // namespace cfp
