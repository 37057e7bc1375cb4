// Marks for functions that run on the host and, compiled by nvcc, on the device.
#pragma once

#if defined(__CUDACC__)
#define CFP_HOST_DEVICE __host__ __device__
#else
#define CFP_HOST_DEVICE
#endif
