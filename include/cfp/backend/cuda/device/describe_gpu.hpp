// What GPU there is, and which libraries.
#pragma once

#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/core/device_error.hpp>

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace cfp::inline v0_1::cuda {

struct gpu_description {
  std::string name, driver, cuda, cublas, nccl;
  double memory_GiB = 0;
};

/// Of the current GPU. Throws device_error, in words, if there is none.
inline gpu_description describe_gpu() {
  int count = 0, device = 0, driver = 0, runtime = 0, nccl = 0;
  if (const cudaError_t e = cudaGetDeviceCount(&count); e != cudaSuccess || count == 0)
    throw device_error(
        "no GPU here: " + cfp::detail::cuda_says("cudaGetDeviceCount", e != cudaSuccess ? e : cudaErrorNoDevice) +
        "; run this where nvidia-smi lists one");
  cudaDeviceProp properties{};
  if (cudaError_t e = cudaGetDevice(&device);
      e != cudaSuccess || (e = cudaGetDeviceProperties(&properties, device)) != cudaSuccess)
    throw device_error("the GPU does not say what it is: " + cfp::detail::cuda_says("cudaGetDeviceProperties", e));
  cudaDriverGetVersion(&driver);  // the newest CUDA it serves; its own version is in a file
  cudaRuntimeGetVersion(&runtime);
  ncclGetVersion(&nccl);
  const auto version = [](int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); };
  std::string of_driver = "serves CUDA " + version(driver);
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) {
      of_driver = word + ", " + of_driver;
      break;
    }
  return {properties.name,      of_driver,
          version(runtime),     std::to_string(cublasLtGetVersion()),
          std::to_string(nccl), static_cast<double>(properties.totalGlobalMem) / (1 << 30)};
}

}  // namespace cfp::cuda
