// What no plan takes less than, before any is looked for.
#pragma once

#include <cfp/plan/realise.hpp>
#include <cfp/profile/machine/operator_time.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// The program of one device that does all and keeps all, its operators computed together as far as they can be.
inline program on_one_device(const graph& g, const target& on) {
  mesh_shape one;
  one.axes.push({"x", 1});
  known_conversions conversions(on.prices);
  return lowered(g, one, sharding::replicated(g), on, {}, &conversions);
}

/// Milliseconds of a step that no plan on so many such devices is below, in whatever micro-batches: of each operator of
/// that program a launch, and the tiles of its products or the bytes it reads and writes, whichever take longer, shared
/// by all devices. Each operator is done by some of them, and its parts read, write and compute no less together.
inline double least_step_ms(const program& alone, const graph& g, const device_type& d, int devices) {
  double seconds = 0;
  for (std::size_t n = 0; n < alone.code.size(); ++n) {
    const instruction& i = alone.code[n];
    if (i.kind != instruction::compute || i.nothing) continue;
    double arithmetic = 0;
    long times = 1;
    for (const instruction& part : alone.parts(i)) {
      const operation& o = g.at(part.op);
      times = o.origin >= 0 ? g.at(o.origin).times : o.times;
      if (o.op->body != op_body::product) continue;
      const bool other = !d.weight_products.empty() && is_of_weight(o, g);
      const double rate = other ? d.product_rate.at(d.weight_products) : product_rate(d, alone.real_bytes);
      arithmetic += least_product_seconds(rate, d, shape_of(bind_call(alone, g, part, 0)));
    }
    const double traffic = work_of(i, alone, g).traffic / d.bandwidth;
    seconds += static_cast<double>(alone.runs(n) * times) * (d.launch + std::max(arithmetic, traffic));
  }
  constexpr double sums_differ = 1e-9;  // in the order they are added up in
  return 1000 * seconds / devices * (1 - sums_differ);
}

}  // namespace cfp
