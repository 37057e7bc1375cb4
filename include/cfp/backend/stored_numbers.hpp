// A whole weight as a checkpoint has it: of its type of numbers, in its order, maybe in several tensors.
#pragma once

#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

enum class stored_type : std::uint8_t { float64, float32, bfloat16, float16 };
/// What safetensors calls them.
inline constexpr std::array<std::string_view, 4> stored_type_names{"F64", "F32", "BF16", "F16"};
constexpr std::size_t width(stored_type t) { return t == stored_type::float64 ? 8 : t == stored_type::float32 ? 4 : 2; }
inline std::optional<stored_type> stored_type_of(std::string_view called) {
  for (std::size_t t = 0; t < stored_type_names.size(); ++t)
    if (stored_type_names[t] == called) return static_cast<stored_type>(t);
  return std::nullopt;
}

/// Its numbers, counted in the row-major order of the weight. The memory is another's.
class stored_numbers {
 public:
  /// `at`: where the tensors begin that hold it, one or one for each of its first dimension, of `elements` numbers
  /// together; the rest as `stored_weight` says.
  stored_numbers(stored_type type, std::vector<std::byte*> at, long first, std::vector<std::pair<long, long>> walk)
      : type_(type), at_(std::move(at)), first_(first), walk_(std::move(walk)) {
    for (const auto& [size, stride] : walk_) of_each_ *= static_cast<std::size_t>(size);
  }

  std::size_t size() const { return of_each_ * at_.size(); }
  stored_type type() const { return type_; }

  double operator[](std::size_t i) const {
    const std::byte* const p = place(i);
    const double x = type_ == stored_type::float32    ? static_cast<double>(read<float>(p))
                     : type_ == stored_type::bfloat16 ? static_cast<double>(static_cast<float>(read<bf16>(p)))
                     : type_ == stored_type::float16  ? static_cast<double>(static_cast<float>(read<fp16>(p)))
                                                      : read<double>(p);
    if (!(std::abs(x) <= static_cast<double>(std::numeric_limits<float>::max()))) note(i);  // what computes has no more
    return x;
  }
  void set(std::size_t i, double x) const {
    std::byte* const p = place(i);
    if (type_ == stored_type::float32) write(p, static_cast<float>(x));
    else if (type_ == stored_type::bfloat16) write(p, bf16(static_cast<float>(x)));
    else if (type_ == stored_type::float16) write(p, fp16(static_cast<float>(x)));
    else write(p, x);
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  /// The first of the numbers read so far that is not finite in float32, or none.
  std::size_t not_finite() const { return *not_finite_; }

 private:
  // Files promise no alignment.
  template <class T>
  static T read(const std::byte* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  template <class T>
  static void write(std::byte* p, T x) {
    std::memcpy(p, &x, sizeof x);
  }
  std::byte* place(std::size_t i) const {
    std::size_t tensor = 0;
    if (at_.size() > 1) tensor = i / of_each_, i %= of_each_;
    std::size_t number = static_cast<std::size_t>(first_);
    for (std::size_t d = walk_.size(); d-- > 0;) {
      const auto size = static_cast<std::size_t>(walk_[d].first), stride = static_cast<std::size_t>(walk_[d].second);
      number += (d > 0 ? i % size : i) * stride;
      if (d > 0) i /= size;
    }
    return at_[tensor] + number * width(type_);
  }
  void note(std::size_t i) const {
    std::size_t least = *not_finite_;
    while (i < least && !not_finite_->compare_exchange_weak(least, i)) {}
  }

  stored_type type_;
  std::vector<std::byte*> at_;
  long first_ = 0;
  std::vector<std::pair<long, long>> walk_;
  std::size_t of_each_ = 1;
  std::shared_ptr<std::atomic<std::size_t>> not_finite_ = std::make_shared<std::atomic<std::size_t>>(none);
};

}  // namespace cfp
