// Work: what a program does on one device, whatever time that takes.
#pragma once

#include <cfp/core/convert.hpp>
#include <cfp/program/compressed_sum.hpp>
#include <cfp/program/handed.hpp>

namespace cfp::inline v0_1 {

/// Arithmetic of products, bytes read and written, bytes sent.
struct work_done {
  double flops = 0, traffic = 0, sent = 0;
};

/// Of an instruction.
inline work_done work_of(const instruction& i, const program& p, const graph& g) {
  work_done out;
  if (i.nothing) return out;
  const auto bytes = [&](int b) { return static_cast<double>(p[b].bytes); };
  if (i.kind == instruction::hand) {
    for (const buffer_numbers* some : {&i.in, &i.out})
      for (const int b : *some) out.traffic += bytes(b);
    if (i.communicates()) out.sent = static_cast<double>(handed_bytes(p, g, i));
    return out;
  }
  if (i.kind != instruction::compute) {
    for (int k = 0; k < (i.kind == instruction::narrow ? i.in.size() : 1); ++k)
      out.traffic += bytes(i.in[k]) + bytes(i.out[k]);
    if (i.step.sent_as != compression::none) {
      out.sent = static_cast<double>(compressed_sum(i.step, elements(p[i.in[0]].local), i.step.devices(p.mesh)).sent());
    } else if (i.communicates()) {
      const long whole = elements(g[p[i.in[0]].value].shape) * g[p[i.in[0]].value].width(p.real_bytes);
      out.sent = static_cast<double>(bytes_sent(i.step, p[i.in[0]].held, whole, p.mesh));
    }
    return out;
  }
  for (const instruction& part : p.parts(i)) {
    const operation& o = g.at(part.op);
    double flops = o.op->body == op_body::product ? 2 : 0;
    for (int f = 0; f < o.r.factors.size() && flops > 0; ++f) {
      flops *= static_cast<double>(o.sizes[f]);
      for (int a = 0; a < p.mesh.rank(); ++a)
        if (part.assigned.factor[a] == f) flops /= p.mesh.size(a);
    }
    out.flops += flops;
  }
  for (int k = 0; k < i.in.size(); ++k) {
    bool table = false;  // of a table only the rows that are asked for are read
    if (i.fusion < 0)
      for (signed char f : g.at(i.op).r.operands[k].factors) table = table || g.at(i.op).r.factors[f].one_hot;
    out.traffic += table ? bytes(i.out[0]) : bytes(i.in[k]);
  }
  for (int b : i.out) out.traffic += bytes(b);
  return out;
}

/// Of a step of a program.
inline work_done work_of(const program& p, const graph& g) {
  work_done out;
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    const work_done w = work_of(p.code[i], p, g);
    out.flops += p.runs(i) * w.flops;
    out.traffic += p.runs(i) * w.traffic;
    out.sent += p.runs(i) * w.sent;
  }
  return out;
}

/// Bytes that instructions without a product read and write in a step on one device: their time is that of memory.
inline double memory_bound_traffic(const program& p, const graph& g) {
  double out = 0;
  for (std::size_t i = 0; i < p.code.size(); ++i)
    if (const work_done w = work_of(p.code[i], p, g); w.flops == 0) out += p.runs(i) * w.traffic;
  return out;
}

}  // namespace cfp
