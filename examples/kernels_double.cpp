// The catalogue's host kernels for double, compiled once for all programs here.
#include <cfp/runtime/host/kernels.hpp>

template class cfp::host::kernels<double>;
