// The catalogue's host kernels for IEEE half precision.
#include <cfp/backend/host/kernels.hpp>

template class cfp::host::kernels<cfp::fp16>;
