// The element types of NCCL's reductions.
#pragma once

#include <cfp/core/placement.hpp>
#include <cfp/op/bf16.hpp>
#include <cfp/op/fp16.hpp>

#include <nccl.h>

#include <type_traits>

namespace cfp::inline v0_1 {

/// NCCL's name of a type of numbers; ncclNumTypes: it has none. To be specialised for a type that has the bits of one
/// of NCCL's.
template <class T>
inline constexpr ncclDataType_t nccl_type = !std::is_integral_v<T> || std::is_same_v<T, bool> ? ncclNumTypes
                                            : sizeof(T) == 1 ? (std::is_signed_v<T> ? ncclInt8 : ncclUint8)
                                            : sizeof(T) == 4 ? (std::is_signed_v<T> ? ncclInt32 : ncclUint32)
                                            : sizeof(T) == 8 ? (std::is_signed_v<T> ? ncclInt64 : ncclUint64)
                                                             : ncclNumTypes;
template <>
inline constexpr ncclDataType_t nccl_type<float> = ncclFloat32;
template <>
inline constexpr ncclDataType_t nccl_type<double> = ncclFloat64;
template <>
inline constexpr ncclDataType_t nccl_type<bf16> = ncclBfloat16;
template <>
inline constexpr ncclDataType_t nccl_type<fp16> = ncclFloat16;

/// What NCCL can reduce.
template <class T>
concept nccl_number = (nccl_type<T> != ncclNumTypes);

constexpr ncclRedOp_t nccl_reduction(reduction by) {
  return by == reduction::sum ? ncclSum : by == reduction::max ? ncclMax : ncclMin;
}

}  // namespace cfp
