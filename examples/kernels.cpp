// The catalogue's host kernels, compiled once for all programs here.
#include <cfp/runtime/host/kernels.hpp>

template class cfp::host::kernels<float>;
template class cfp::host::kernels<double>;
