// A short list with room inside: a plain aggregate, so that values made of lists can be template arguments.
#pragma once

#include <cfp/core/config.hpp>
#include <cfp/core/limit.hpp>

namespace cfp::inline v0_1 {

/// At most `Capacity` items of `T`, in order. Going past the capacity is an error: at compile time it does not
/// compile, at run time it throws (the thrown text says which bound).
template <class T, int Capacity>
struct list {
  T items[static_cast<unsigned>(Capacity)]{};
  int count = 0;

  static constexpr int capacity = Capacity;

  CFP_HOST_DEVICE constexpr int size() const { return count; }
  CFP_HOST_DEVICE constexpr bool empty() const { return count == 0; }
  CFP_HOST_DEVICE constexpr T& operator[](int i) { return items[i]; }
  CFP_HOST_DEVICE constexpr const T& operator[](int i) const { return items[i]; }
  CFP_HOST_DEVICE constexpr T* begin() { return items; }
  CFP_HOST_DEVICE constexpr T* end() { return items + count; }
  CFP_HOST_DEVICE constexpr const T* begin() const { return items; }
  CFP_HOST_DEVICE constexpr const T* end() const { return items + count; }
  constexpr T& back() { return items[count - 1]; }
  constexpr const T& back() const { return items[count - 1]; }

  constexpr void push(const T& item) {
    if (count == Capacity)
      throw limit_reached(
          "a list is full; a tensor has at most 8 dimensions, a rule at most 16 factors, a mesh at most 4 axes");
    items[count++] = item;
  }
  constexpr void pop() { items[--count] = T{}; }
  constexpr void insert(int at, const T& item) {
    push(item);
    for (int i = count - 1; i > at; --i) items[i] = items[i - 1];
    items[at] = item;
  }
  /// Position of the first equal item, or -1.
  constexpr int find(const T& item) const {
    for (int i = 0; i < count; ++i)
      if (items[i] == item) return i;
    return -1;
  }
  constexpr bool contains(const T& item) const { return find(item) >= 0; }

  friend constexpr bool operator==(const list& a, const list& b) {
    if (a.count != b.count) return false;
    for (int i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

}  // namespace cfp
