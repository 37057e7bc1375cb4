// Marks for functions: that run on the host and, compiled by nvcc, on the device; that a compiled library may hold.
#pragma once

#if defined(__CUDACC__)
#define CFP_HOST_DEVICE __host__ __device__
#else
#define CFP_HOST_DEVICE
#endif

/// What a program that links `cfp::kernels` need not compile: defined where CFP_COMPILED is not, inline unless this is
/// the library itself.
#if !defined(CFP_INLINE)
#define CFP_INLINE inline
#endif
