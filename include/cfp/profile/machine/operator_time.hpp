// What an operator takes on a described device: a launch, and its arithmetic or its memory traffic, whichever takes
// longer. Small products are slower than proportional: they do not fill the tiles of all processors.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/machine/machine.hpp>
#include <cfp/profile/work.hpp>
#include <cfp/program/call.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// A matrix product: `batch` times [rows x inner] [inner x columns].
struct product_shape {
  double batch = 1, rows = 1, columns = 1, inner = 1;
};

/// Of an operator with two operands and one result on one device.
inline product_shape shape_of(const call& c) {
  product_shape out;
  const rule& r = c.r();
  for (int f = 0; f < c.factors; ++f) {
    const auto size = static_cast<double>(c.size[f]);
    const bool a = r.operands[0].dim_of(f) >= 0, b = r.operands.size() > 1 && r.operands[1].dim_of(f) >= 0,
               y = r.results[0].dim_of(f) >= 0;
    (!y ? out.inner : a && b ? out.batch : a ? out.rows : out.columns) *= size;
  }
  return out;
}

/// Operations per second of products of numbers of so many bytes.
inline double product_rate(const device_type& d, long real_bytes) {
  const char* const type = real_bytes == 2 ? "bfloat16" : real_bytes == 8 ? "float64" : "float32";
  if (const auto at = d.product_rate.find(type); at != d.product_rate.end()) return at->second;
  throw bad_input("the device '" + d.name + "' has no product_rate for " + type +
                  "; add what it attains to its description");
}

/// Seconds of a product's arithmetic. Every processor works on one tile and one piece of the inner dimension at a time;
/// the last round takes as long as a full one.
inline double product_seconds_at(double rate, const device_type& d, const product_shape& s) {
  if (d.processors == 1) return 2 * s.batch * s.rows * s.columns * s.inner / rate;
  const double depth = std::min(d.tile_depth, s.inner);
  const double pieces =
      s.batch * std::ceil(s.rows / d.tile) * std::ceil(s.columns / d.tile) * std::ceil(s.inner / depth);
  return std::ceil(pieces / d.processors) * 2 * d.tile * d.tile * depth * d.processors / rate;
}

/// That the parts of a product do not take less than together: its tiles, without what a last round and a last piece of
/// the inner dimension take beyond their own.
inline double least_product_seconds(double rate, const device_type& d, const product_shape& s) {
  if (d.processors == 1) return product_seconds_at(rate, d, s);
  return s.batch * std::ceil(s.rows / d.tile) * d.tile * std::ceil(s.columns / d.tile) * d.tile * 2 * s.inner / rate;
}

inline double product_seconds(const device_type& d, long real_bytes, const product_shape& s) {
  return product_seconds_at(product_rate(d, real_bytes), d, s);
}

/// Whether an operator reads a weight or makes the gradient of one.
inline bool is_of_weight(const operation& o, const graph& g) {
  const auto weight = [&](int v) {
    return g[v].role == value_role::weight || (g[v].of >= 0 && g[g[v].of].role == value_role::weight);
  };
  return std::any_of(o.operands.begin(), o.operands.end(), weight) ||
         std::any_of(o.results.begin(), o.results.end(), weight);
}

/// Seconds of bytes between memory of the device and of the host.
inline double carry_seconds(const device_type& d, long bytes) {
  if (d.host_bandwidth > 0) return d.launch + static_cast<double>(bytes) / d.host_bandwidth;
  throw bad_input("the device '" + d.name + "' has no host_bandwidth; add what it attains to its description");
}

/// Seconds of a local instruction: an operator, or the packing, slicing and rounding that conversions do.
inline double operator_seconds(const device_type& d, const instruction& i, const program& p, const graph& g) {
  if (i.nothing) return 0;
  const work_done w = work_of(i, p, g);
  double arithmetic = 0;
  if (i.kind == instruction::compute)
    for (const instruction& part : p.parts(i))
      if (g.at(part.op).op->body == op_body::product) {
        const bool other = !d.weight_products.empty() && is_of_weight(g.at(part.op), g);
        const double rate = other ? d.product_rate.at(d.weight_products) : product_rate(d, p.real_bytes);
        arithmetic += product_seconds_at(rate, d, shape_of(bind_call(p, g, part, 0)));
      }
  return d.launch + std::max(arithmetic, w.traffic / d.bandwidth);
}

}  // namespace cfp
