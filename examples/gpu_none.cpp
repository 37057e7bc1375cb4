#include "gpu.hpp"

#include <stdexcept>

example::gpu_here example::gpu() { throw std::runtime_error("this program was built without CUDA; install the CUDA toolkit and build it again"); }
