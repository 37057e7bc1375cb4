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

  operator const std::vector<T>&() const { return all(); }
  [[nodiscard]] const std::vector<T>& all() const {
    static const std::vector<T> none;
    return held_ ? *held_ : none;
  }

  [[nodiscard]] std::size_t size() const { return all().size(); }
  [[nodiscard]] bool empty() const { return all().empty(); }
  [[nodiscard]] const T& operator[](std::size_t i) const { return (*held_)[i]; }
  [[nodiscard]] auto begin() const { return all().begin(); }
  [[nodiscard]] auto end() const { return all().end(); }

  /// Tells lists apart that are held apart; equal ones may be.
  [[nodiscard]] const void* id() const { return held_.get(); }

 private:
  std::shared_ptr<const std::vector<T>> held_;
};

}  // namespace cfp
