// What single steps of conversions cost where programs run: the ways between partitions are chosen by it.
#pragma once

#include <cfp/program/compressed_sum.hpp>

namespace cfp::inline v0_1 {

/// A tensor before a step: its whole shape, how it is held, and the bytes of an element.
struct step_tensor {
  const extents& shape;
  const partition& held;
  long width = 4;
};

/// What one step costs, in a unit of its own. Who programs are lowered for has it (`target`).
class step_prices {
 public:
  virtual ~step_prices() = default;
  /// Not negative.
  virtual long operator()(const conversion_step&, const step_tensor&, const mesh_shape&) const = 0;
};

/// Links that are all alike, as of the ranks of one machine: the fewest bytes, and of ways that send as many the one
/// with the fewest collectives. In 256ths of a byte, as pieces of few bytes are no whole ones, and a call as 16.
class alike_links : public step_prices {
 public:
  long operator()(const conversion_step& s, const step_tensor& t, const mesh_shape& mesh) const override {
    if (!s.communicates()) return 0;
    if (s.sent_as == compression::none) return bytes_sent(s, t.held, 256 * elements(t.shape) * t.width, mesh) + 16;
    const compressed_sum sum(s, elements(local_shape(t.held, t.shape, mesh)), s.devices(mesh));
    return 256 * sum.sent() + (sum.all ? 2 : 1) * 16;
  }
};
inline const alike_links links_alike;

}  // namespace cfp
