// What no plan takes less than, before any is looked for.
#pragma once

#include <cfp/profile/machine/operator_time.hpp>

namespace cfp::inline v0_1 {

/// Milliseconds of a step of a training graph that no plan on so many such devices is below: the arithmetic of its
/// products, at the rates described and shared by all devices, and nothing else.
inline double least_step_ms(const graph& g, const device_type& d, long real_bytes, int devices) {
  double seconds = 0;
  for (const operation& o : g.operations) {
    if (o.op->body != op_body::product) continue;
    const bool other = !d.weight_products.empty() && is_of_weight(o, g);
    const long times = o.origin >= 0 ? g.at(o.origin).times : o.times;
    double flops = 2 * static_cast<double>(times) * (o.when == phase::update ? 1 : g.passes);
    for (int f = 0; f < o.r.factors.size(); ++f) flops *= static_cast<double>(o.sizes[f]);
    seconds += flops / (other ? d.product_rate.at(d.weight_products) : product_rate(d, real_bytes));
  }
  return 1000 * seconds / devices;
}

}  // namespace cfp
