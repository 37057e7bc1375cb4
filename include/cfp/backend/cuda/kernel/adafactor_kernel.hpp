// Adafactor in place: mean squares, and weights. Its sums are maps like others.
#pragma once

#include <cfp/backend/cuda/kernel/accumulate_kernel.hpp>
#include <cfp/op/adafactor.hpp>
#include <cfp/op/optimizer.hpp>

namespace cfp::inline v0_1::cuda {

template <class T>
struct mean_square_kernel {
  static constexpr int threads = 256;
  static constexpr long shared_bytes = sizeof(float);

  float* mean;
  chain_tensor sum;
  float count, least;
  const step_state* state;
  long n;

  long blocks() const { return pieces_of(n, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    auto* stays = reinterpret_cast<float*>(t.shared());
    if (t.thread() == 0) *stays = static_cast<float>(mean_square_t::stays(static_cast<double>(state->step)));
    t.sync();
    if (const long i = t.block() * threads + t.thread(); i < n)
      mean[i] = mean_square_t::apply(mean[i], load_one<T>(sum, i), *stays, count, least);
  }
};

/// Weights, of which mean squares may have some dimensions each.
template <class T>
struct adafactor_kernel {
  static constexpr int threads = 256;
  static constexpr long shared_bytes = sizeof(float) * 2;

  float* weight;
  chain_tensor gradient;
  const float* mean[3];  // of each number; or of rows, of columns, and the sum of those of rows
  const float* square;   // of all relative changes
  bool is_matrix;
  double given[7];  // the operator's scalars
  const step_state* state;
  int dims;
  long size[max_dims], stride[3][max_dims];
  long n;

  adafactor_kernel() = default;
  adafactor_kernel(const call& c, const step_state* now)
      : weight(static_cast<float*>(c.result[0].data)),
        gradient(detail::in_line(c.operand[1], c.operand[1].wide)), mean{},
        is_matrix(c.r().operands.size() > 4), given{}, state(now), dims(0), size{}, stride{},
        n(detail::elements_of(c)) {
    const int means = is_matrix ? 3 : 1;
    for (int k = 0; k < means; ++k) mean[k] = static_cast<const float*>(c.operand[2 + k].data);
    square = static_cast<const float*>(c.operand[2 + means].data);
    for (int i = 0; i < c.op->scalars.size(); ++i) given[i] = c.op->scalars[i];
    for (int f = 0; f < c.factors; ++f) {
      if (c.size[f] == 1) continue;
      size[dims] = c.size[f];
      for (int k = 0; k < means; ++k) stride[k][dims] = c.operand[2 + k].stride[f];
      ++dims;
    }
  }

  long blocks() const { return pieces_of(n, threads); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    auto* shared = reinterpret_cast<float*>(t.shared());
    if (t.thread() == 0)
      shared[0] = static_cast<float>(
          adamw_t::rate_at(static_cast<double>(state->step), given[2], given[3], given[4], given[5]));
    if (t.thread() == warp_size) shared[1] = adafactor_t::limit(*square, static_cast<float>(given[0]));
    t.sync();
    const long i = t.block() * threads + t.thread();
    if (i >= n) return;
    long at[3] = {0, 0, 0}, rest = i;
    for (int d = dims - 1; d >= 0; --d) {
      const long here = rest % size[d];
      rest /= size[d];
      for (int k = 0; k < 3; ++k) at[k] += here * stride[k][d];
    }
    const float by = is_matrix ? relative_square_of_matrix_t::factor(mean[0][at[0]], mean[1][at[1]], mean[2][at[2]],
                                                                     static_cast<float>(given[6]))
                               : 1.0f / cfp::sqrt(mean[0][at[0]]);
    weight[i] = adafactor_t::apply(weight[i], load_one<T>(gradient, i) * by * shared[1], shared[0],
                                   static_cast<float>(given[1]));
  }
};

template <class T, class Queue>
void run_mean_squares(const Queue& q, std::span<const call> all, const step_state* state) {
  std::vector<mean_square_kernel<T>> kernels;
  for (const call& c : all)
    kernels.push_back({static_cast<float*>(c.result[0].data), detail::in_line(c.operand[1], c.operand[1].wide),
                       static_cast<float>(c.op->scalars[0]), static_cast<float>(c.op->scalars[1]), state,
                       detail::elements_of(c)});
  launch_many(q, kernels, mean_square_kernel<T>::shared_bytes);
}

template <class T, class Queue>
void run_adafactor(const Queue& q, std::span<const call> all, const step_state* state) {
  std::vector<adafactor_kernel<T>> kernels;
  for (const call& c : all) kernels.push_back(adafactor_kernel<T>(c, state));
  launch_many(q, kernels, adafactor_kernel<T>::shared_bytes);
}

}  // namespace cfp::cuda
