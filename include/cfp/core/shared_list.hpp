// What many have in common is held once.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Items that do not change. Copies hold the same ones, so a thousand equal layers take the memory of one, and are seen
/// to be equal without looking.
template <class T>
class shared_list {
 public:
  shared_list() = default;
  shared_list(std::vector<T> items) : held_(std::make_shared<const std::vector<T>>(std::move(items))) {}

  [[nodiscard]] std::size_t size() const { return held_ ? held_->size() : 0; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (*held_)[i]; }
  [[nodiscard]] const T* begin() const { return held_ ? held_->data() : nullptr; }
  [[nodiscard]] const T* end() const { return begin() + size(); }

  /// Tells lists apart that are held apart; equal ones may be.
  [[nodiscard]] const void* id() const { return held_.get(); }

 private:
  std::shared_ptr<const std::vector<T>> held_;
};

}  // namespace cfp
