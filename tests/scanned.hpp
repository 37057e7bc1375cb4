// A model of scans alone, and programs whose ranks hand on what lies between pieces.
#pragma once

#include <cfp/families/in_pieces.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/program/memory.hpp>

namespace scanned {

using namespace cfp;

/// Every operation split by its factor of pieces, where it has one, else not at all; scans as well, or what they read
/// is gathered.
inline sharding along_pieces(const graph& g, int ranks, bool scans) {
  sharding s = sharding::replicated(g);
  for (int i = 0; i < g.size() && ranks > 1; ++i)
    for (int f = g.at(i).op->body == op_body::scan && !scans ? max_factors : 0; f < g.at(i).r.factors.size(); ++f)
      if (factor_name(g, g.at(i), f) == name("pieces") && g.at(i).hub < 0)
        s.assigned[static_cast<std::size_t>(i)].factor[0] = static_cast<signed char>(f);
  return s;
}

/// Weights through linear attention, states between pieces and neighbours, both ways, to a number.
inline graph model_of_scans(long pieces) {
  model net;
  const dimension b{"batch", 2}, h{"heads", 4}, p{"pieces", pieces}, s{"s", 3}, d{"depth", 4};
  const auto weight = [&](const char* label) { return net.weight(label, {b, h, p, s, d}, {0.1, 0.7}); };
  const tensor q = weight("q"), k = weight("k"), v = weight("v");
  const tensor kept = net.weight("kept", {b, h, p, s}, {0.5, 0.3});
  const tensor states = add(state_before(k, kept), state_behind(v, kept));
  const tensor y = add(families::linear_attention(q, k, v), add(states, add(from_before(q), from_behind_around(v))));
  net.recorded.loss = scaled(op<"b h p s d -> ">{}(mul(y, y)), 1e-3).id;
  return differentiate(refine(net.recorded));
}

inline program program_along_pieces(const graph& g, const mesh_shape& mesh, long real_bytes, bool scans = true) {
  const sharding split = along_pieces(g, static_cast<int>(mesh.size(0)), scans);
  program out = lower(g, mesh, split, all_operations(g), real_bytes);
  plan_memory(out);
  return out;
}

}  // namespace scanned
