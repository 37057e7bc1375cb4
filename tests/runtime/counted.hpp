// What a rank's communicators counted, over all mesh axes.
#pragma once

#include <cfp/backend/backend.hpp>

inline cfp::collective_count counted(const cfp::rank& r) {
  cfp::collective_count out;
  for (const cfp::traffic& axis : r.counted())
    for (std::size_t c = 0; c < out.calls.size(); ++c) out.calls[c] += axis.calls[c], out.bytes[c] += axis.bytes[c];
  return out;
}
