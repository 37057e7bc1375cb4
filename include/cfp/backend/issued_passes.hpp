// Passes of steps that were issued to a device and are not known to have ended, and the losses of steps that have.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

namespace cfp::inline v0_1 {

class issued_passes {
 public:
  static constexpr std::size_t most = 2;  ///< staging has two copies of what a pass is given and leaves

  bool none() const { return issued_.empty(); }
  bool full() const { return issued_.size() == most; }
  /// Pass number `pass` of so many of its step.
  void issue(int pass, int of) { issued_.push_back({pass == 0, pass + 1 == of, of}); }

  /// The oldest has ended with this loss.
  void end(double loss) {
    const issued p = issued_.front();
    issued_.pop_front();
    sum_ = (p.first ? 0 : sum_) + loss / p.of;
    if (p.last) ended_.push_back(last_ = sum_);
  }
  /// The loss of the oldest step that has ended, once: the mean over its passes.
  std::optional<double> take() {
    if (ended_.empty()) return std::nullopt;
    const double out = ended_.front();
    ended_.pop_front();
    return out;
  }
  /// The loss of the step that ended last is not to be taken.
  void drop_last() { ended_.pop_back(); }
  double last() const { return last_; }

 private:
  struct issued {
    bool first = false, last = false;  // of its step
    int of = 1;
  };
  std::deque<issued> issued_;
  std::deque<double> ended_;
  double sum_ = 0, last_ = 0;
};

}  // namespace cfp
