// What updates weights and the state of optimizers on the processor, in place.
#pragma once

#include <cfp/backend/host/stored_narrow.hpp>
#include <cfp/backend/lean_state.hpp>
#include <cfp/backend/numbers.hpp>
#include <cfp/op/adafactor.hpp>
#include <cfp/op/optimizer.hpp>

#include <algorithm>
#include <cmath>

namespace cfp::inline v0_1::host {

namespace detail {

inline long count_of(const call& c) {
  long n = 1;
  for (int f = 0; f < c.factors; ++f) n *= c.size[f];
  return n;
}

/// A moment, block by block: numbers of it to compute with, and back to how it is stored.
template <class T>
class moment {
  using wide = wide_t<T>;

 public:
  moment(const call& c, const call_tensor& t, long n, int number)
      : t_(t), n_(n), step_(static_cast<std::uint64_t>(c.step)), tensor_(static_cast<std::uint32_t>(c.forward)),
        shift_(16 * number) {}

  wide* block(long from, long count) {
    if (!is_lean(t_.lean)) return static_cast<wide*>(t_.data) + from;
    const blocks_of_8_bits blocks(t_.data, n_);
    for (long i = 0; i < count; ++i)
      x_[i] = static_cast<wide>(t_.lean == element::bfloat16
                                    ? static_cast<float>(static_cast<const bf16*>(t_.data)[from + i])
                                    : block8_code::decode(blocks.code[from + i], blocks.scale[from / block8_numbers]));
    return x_;
  }
  void store(long from, long count) {
    if (!is_lean(t_.lean)) return;
    float narrow[block8_numbers];
    for (long i = 0; i < count; ++i) narrow[i] = static_cast<float>(x_[i]);
    write_lean_block(t_.lean, t_.data, n_, from, narrow, [this](long i) {
      return rounding_bits(tensor_, step_, static_cast<std::uint64_t>(i)) >> shift_ & 0xffff;
    });
  }

 private:
  const call_tensor& t_;
  long n_;
  std::uint64_t step_;
  std::uint32_t tensor_;
  int shift_;
  wide x_[block8_numbers];
};

}  // namespace detail

/// AdamW over all elements of a shard.
template <class T>
void run_adamw(const call& c) {
  using wide = wide_t<T>;
  const long n = detail::count_of(c);
  wide* const w = static_cast<wide*>(c.result[0].data);
  const numbers<T> g(c.operand[1]);
  const auto& given = c.op->scalars;
  const auto s = [&](int i) { return static_cast<wide>(given[i]); };
  const wide beta1 = s(1), beta2 = s(2), epsilon = s(3), decay = s(4);
  const auto step = static_cast<double>(c.step);
  const auto rate = static_cast<wide>(adamw_t::rate_at(step, given[0], given[5], given[6], given[7]));
  const wide clip = c.op->operands.size() > 4 ? *static_cast<const wide*>(c.operand[4].data) : wide(1);
  const auto correct1 = static_cast<wide>(1.0 / (1.0 - std::pow(given[1], step)));
  const auto correct2 = static_cast<wide>(1.0 / (1.0 - std::pow(given[2], step)));
  detail::moment<T> first(c, c.result[1], n, 0), second(c, c.result[2], n, 1);
  for (long from = 0; from < n; from += block8_numbers) {
    const long count = std::min(n - from, block8_numbers);
    wide* const m = first.block(from, count);
    wide* const v = second.block(from, count);
    for (long i = 0; i < count; ++i)
      w[from + i] = adamw_t::apply(w[from + i], g[from + i] * clip, m[i], v[i], rate, beta1, beta2, epsilon, decay,
                                   correct1, correct2);
    first.store(from, count);
    second.store(from, count);
  }
}

/// A mean square goes on by what a step adds.
template <class T>
void run_mean_square(const call& c) {
  using wide = wide_t<T>;
  const long n = detail::count_of(c);
  wide* const mean = static_cast<wide*>(c.result[0].data);
  const numbers<T> sum(c.operand[1]);
  const auto stays = static_cast<wide>(mean_square_t::stays(static_cast<double>(c.step)));
  const auto count = static_cast<wide>(c.op->scalars[0]), least = static_cast<wide>(c.op->scalars[1]);
  for (long i = 0; i < n; ++i) mean[i] = mean_square_t::apply(mean[i], sum[i], stays, count, least);
}

/// Adafactor over all elements of a shard.
template <class T>
void run_adafactor(const call& c) {
  using wide = wide_t<T>;
  const bool is_matrix = c.r().operands.size() > 4;
  const long n = detail::count_of(c);
  wide* const w = static_cast<wide*>(c.result[0].data);
  const numbers<T> g(c.operand[1]);
  const auto at = [&](int k) { return static_cast<const wide*>(c.operand[k].data); };
  const auto& given = c.op->scalars;
  const auto rate =
      static_cast<wide>(adamw_t::rate_at(static_cast<double>(c.step), given[2], given[3], given[4], given[5]));
  const auto decay = static_cast<wide>(given[1]), rows = is_matrix ? static_cast<wide>(given[6]) : wide(1);
  const wide limit = adafactor_t::limit(*at(is_matrix ? 5 : 3), static_cast<wide>(given[0]));
  for (long i = 0; i < n; ++i) {
    long place[3] = {};  // of its mean squares
    for (long f = c.factors - 1, rest = i; f >= 0; rest /= c.size[f--])
      for (int k = 0; k < (is_matrix ? 3 : 1); ++k) place[k] += rest % c.size[f] * c.operand[2 + k].stride[f];
    const wide by = is_matrix
                        ? relative_square_of_matrix_t::factor(at(2)[place[0]], at(3)[place[1]], at(4)[place[2]], rows)
                        : wide(1) / cfp::sqrt(at(2)[place[0]]);
    w[i] = adafactor_t::apply(w[i], g[i] * by * limit, rate, decay);
  }
}

/// The kernel of an operator that updates; null if there is none.
template <class T>
kernel_function update_of(const op_info& op) {
  if (&op == &info<adamw_t>) return &run_adamw<T>;
  if (&op == &info<mean_square_t>) return &run_mean_square<T>;
  if (&op == &info<adafactor_t> || &op == &info<adafactor_of_matrix_t>) return &run_adafactor<T>;
  return nullptr;
}

}  // namespace cfp::host
