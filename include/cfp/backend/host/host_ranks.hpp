// Ranks whose devices are processors, however the ranks are made.
#pragma once

#include <cfp/backend/host/device.hpp>
#include <cfp/backend/own_kernels.hpp>
#include <cfp/backend/ranks_on.hpp>
#include <cfp/backend/this_processor.hpp>
#include <cfp/core/bad_input.hpp>

namespace cfp::inline v0_1 {

namespace detail {

template <class T, class Pool, class Context>
std::unique_ptr<backend> host_ranks_in(const mesh_shape& mesh, number type, const own_kernels& own,
                                       const std::string& description) {
  auto all = std::make_shared<host::kernels<T>>();
  for (const own_kernel& k : own) all->add(k);
  typename host::device<T, Context>::parts parts{std::move(all)};
  return std::make_unique<ranks_on<host::device<T, Context>, Pool, Context>>(mesh, type, std::move(parts), description);
}

/// Throws bad_input for numbers that the host has no kernels for.
template <class Pool, class Context>
std::unique_ptr<backend> host_ranks(const mesh_shape& mesh, number type, const own_kernels& own,
                                    const std::string& what) {
  switch (type) {
    case number::float64: return host_ranks_in<double, Pool, Context>(mesh, type, own, what);
    case number::float32: return host_ranks_in<float, Pool, Context>(mesh, type, own, what);
    case number::bfloat16: return host_ranks_in<bf16, Pool, Context>(mesh, type, own, what);
    case number::float16: break;
  }
  throw bad_input("numbers are stored as " + std::string(name_of(type)) +
                  " on GPUs only; take bfloat16 or float32 here");
}

}  // namespace detail

}  // namespace cfp
