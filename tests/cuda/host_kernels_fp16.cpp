// The catalogue's host kernels for IEEE half precision.
#include <cfp/runtime/host/kernels.hpp>

template class cfp::host::kernels<cfp::fp16>;
