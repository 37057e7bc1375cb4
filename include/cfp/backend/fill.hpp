// Initial values of tensors. Random numbers are a function of (seed, tensor, global index), so that every mesh starts
// from the same values.
#pragma once

#include <cfp/model/name_hash.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/program/program.hpp>

// It takes a unit that knows CUDA's version for one that nvcc compiles.
#if defined(CUDART_VERSION) && !defined(__CUDACC__)
#pragma push_macro("CUDART_VERSION")
#undef CUDART_VERSION
#include <Random123/boxmuller.hpp>
#pragma pop_macro("CUDART_VERSION")
#else
#include <Random123/boxmuller.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace cfp::inline v0_1 {

/// Calls f(local index, global index, count) for every run of neighbours a device holds, in order.
template <class F>
void each_run(const extents& global, const partition& held, const mesh_shape& mesh, int device, F&& f) {
  const extents local = local_shape(held, global, mesh);
  const long n = elements(local);
  if (n == 0) return;
  int outer = global.size();  // dimensions whose pieces do not lie in one run
  long run = 1, stride[max_dims] = {}, at[max_dims] = {}, where = 0, step = 1;
  for (int d = global.size() - 1; d >= 0; --d) {
    if (outer == d + 1 && run == step) {
      run *= local[d];
      outer = d;
    }
    stride[d] = step;
    where += piece_of(held, d, mesh, device) * local[d] * step;
    step *= global[d];
  }
  for (long i = 0; i < n; i += run) {
    f(i, where, run);
    for (int d = outer - 1; d >= 0; --d) {
      where += stride[d];
      if (++at[d] < local[d]) break;
      where -= at[d] * stride[d];
      at[d] = 0;
    }
  }
}

/// Calls f(local index, global index) for every element a device holds, in order.
template <class F>
void each_element(const extents& global, const partition& held, const mesh_shape& mesh, int device, F&& f) {
  each_run(global, held, mesh, device, [&](long i, long where, long count) {
    for (long k = 0; k < count; ++k) f(i + k, where + k);
  });
}

namespace detail {
/// Calls part(from, to) on pieces of [0, n), each by a thread of its own where there is much to do: weights may be as
/// many as memory holds.
template <class Part>
void in_parts(long n, const Part& part) {
  constexpr long of_a_thread = 1 << 20;
  const long here = std::max(1l, static_cast<long>(std::thread::hardware_concurrency()));
  const long threads = std::clamp(n / of_a_thread, 1l, here);
  std::vector<std::jthread> others;
  for (long t = 1; t < threads; ++t) others.emplace_back([=, &part] { part(n * t / threads, n * (t + 1) / threads); });
  part(0, n / threads);
}
}  // namespace detail

/// Fills a device's piece of a tensor of numbers as its `filling` says.
template <class T>
void fill_numbers(T* out, const value& v, const partition& held, const mesh_shape& mesh, int device,
                  std::uint64_t seed) {
  const std::uint64_t id = name_hash(v.label.view());
  using wide = wide_t<T>;
  const wide base = static_cast<wide>(v.fill.constant), deviation = static_cast<wide>(v.fill.deviation);
  const long count = elements(local_shape(held, v.shape, mesh));
  if (v.fill.deviation == 0) {
    detail::in_parts(count, [&](long from, long to) { std::fill(out + from, out + to, T(base)); });
    return;
  }
  if (v.fill.periodic) {
    std::vector<T> period(4096);
    for (std::size_t i = 0; i < period.size(); ++i)
      period[i] =
          T(base + deviation * static_cast<wide>(
                                   r123::boxmuller(random_words(seed, id, i).v[0], random_words(seed, id, i).v[1]).x));
    each_run(v.shape, held, mesh, device, [&](long i, long global, long run) {
      for (long k = 0; k < run;) {
        const long from = (global + k) & 4095, n = std::min(run - k, 4096 - from);
        std::copy_n(period.data() + from, n, out + i + k);
        k += n;
      }
    });
    return;
  }
  detail::in_parts(count, [&](long from, long to) {
    each_run(v.shape, held, mesh, device, [&](long i, long global, long run) {
      for (long k = std::max(from - i, 0l); k < std::min(to - i, run); ++k) {
        const auto w = random_words(seed, id, static_cast<std::uint64_t>(global + k));
        out[i + k] = T(base + deviation * static_cast<wide>(r123::boxmuller(w.v[0], w.v[1]).x));
      }
    });
  });
}

/// Fills a device's piece of a tensor of indices, uniform in [0, bound); of targets that may be ignored one in eight
/// is.
inline void fill_indices(std::int32_t* out, const value& v, const partition& held, const mesh_shape& mesh, int device,
                         std::uint64_t seed) {
  const std::uint64_t id = name_hash(v.label.view());
  each_element(v.shape, held, mesh, device, [&](long i, long global) {
    const auto w = random_words(seed, id, static_cast<std::uint64_t>(global));
    const bool ignored = v.fill.may_be_ignored && w.v[1] % 8 == 0;
    out[i] = ignored ? ignored_target
                     : static_cast<std::int32_t>(
                           (static_cast<std::uint64_t>(w.v[0]) * static_cast<std::uint64_t>(v.fill.bound)) >> 32);
  });
}

}  // namespace cfp
