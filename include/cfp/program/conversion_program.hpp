// One step of a conversion as a program of its own, to be measured or priced.
#pragma once

#include <cfp/program/scratch.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// Of value v, given in partition `from`; numbers take `real_bytes`. Its memory is not planned yet.
inline program conversion_program(const graph& g, const mesh_shape& mesh, int v, const partition& from,
                                  const conversion_step& s, long real_bytes) {
  program p;
  p.mesh = mesh;
  p.real_bytes = real_bytes;
  const auto allocate = [&](const partition& held, long bytes, bool persistent) {
    buffer b;
    b.value = v;
    b.held = held;
    b.type = stored(g[v].type, real_bytes);
    b.local = local_shape(held, g[v].shape, mesh);
    b.bytes = bytes > 0 ? bytes : elements(b.local) * g[v].width(real_bytes);
    b.root = static_cast<int>(p.buffers.size());
    b.persistent = persistent;
    p.buffers.push_back(b);
    return b.root;
  };
  instruction i;
  i.kind = instruction::reshard;
  i.step = s;
  i.in.push(allocate(from, 0, true));
  i.out.push(allocate(after(from, s), 0, false));
  add_scratch(p, i, [&](long bytes) { return allocate(from, bytes, false); });
  p.code.push_back(i);
  return p;
}

}  // namespace cfp
