// The catalogue's host kernels for bfloat16, compiled once for all programs here.
#include <cfp/runtime/host/kernels.hpp>

template class cfp::host::kernels<cfp::bf16>;
