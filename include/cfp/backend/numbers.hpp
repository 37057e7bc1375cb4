// A tensor's memory as kernels read and write it: stored as T, or wide; computed in `wide_t<T>` either way.
#pragma once

#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>
#include <cfp/program/call.hpp>

namespace cfp::inline v0_1 {

template <class T>
class numbers {
 public:
  using wide = wide_t<T>;

  numbers() = default;
  explicit numbers(const call_tensor& t, long from = 0) : data_(t.data), is_wide_(t.wide) { *this = *this + from; }

  wide operator[](long i) const {
    if constexpr (std::is_same_v<T, wide>) return static_cast<const T*>(data_)[i];
    else return is_wide_ ? static_cast<const wide*>(data_)[i] : static_cast<wide>(static_cast<const T*>(data_)[i]);
  }
  void set(long i, wide x) const {
    if constexpr (std::is_same_v<T, wide>) static_cast<T*>(data_)[i] = x;
    else if (is_wide_) static_cast<wide*>(data_)[i] = x;
    else static_cast<T*>(data_)[i] = T(x);
  }
  numbers operator+(long n) const {
    numbers out = *this;
    if (std::is_same_v<T, wide> || !is_wide_) out.data_ = static_cast<T*>(data_) + n;
    else out.data_ = static_cast<wide*>(data_) + n;
    return out;
  }

 private:
  void* data_ = nullptr;
  bool is_wide_ = false;
};

}  // namespace cfp
