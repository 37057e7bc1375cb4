// Instruction kinds: instructions that do the same on pieces of the same size take the same time, whatever program they
// are in.
#pragma once

#include <cfp/model/read_mesh.hpp>
#include <cfp/program/around.hpp>
#include <cfp/program/call.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace cfp::inline v0_1 {

/// What an instruction does, and on which local sizes: equal ones take equal time. "product ab4cb4>ac4: 128x384x768"
struct instruction_kind {
  std::string kind, size;
  std::string label() const { return kind + ": " + size; }
  std::string alike() const;
};

/// The label with dimensions merged that lie beside each other wherever they occur: of 4x16 rows and of 2x32, which
/// make one matrix, the same. Not where what is done may depend on coordinates.
inline std::string instruction_kind::alike() const {
  const std::string patterns = kind.substr(kind.rfind(' ') + 1);
  if (patterns.find('>') == std::string::npos || kind.find_first_of("~+") != std::string::npos ||
      size.find(' ') != std::string::npos)
    return label();
  std::string out = kind + ": ";
  long merged = 1;
  char factor = 'a';
  for (std::size_t at = 0; at < size.size(); ++factor) {
    const std::size_t end = std::min(size.find('x', at), size.size());
    merged *= std::stol(size.substr(at, end - at));
    at = end + 1;
    bool with_next = at < size.size();
    const char next = static_cast<char>(factor + 1);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (patterns[i] == factor) with_next = with_next && i + 1 < patterns.size() && patterns[i + 1] == next;
      if (patterns[i] == next) with_next = with_next && i > 0 && patterns[i - 1] == factor;
    }
    if (with_next) continue;
    out += std::to_string(std::exchange(merged, 1)) + (at < size.size() ? "x" : "");
  }
  return out;
}

/// Of a conversion step of a tensor of that shape, `width` bytes per number.
inline instruction_kind kind_of(const conversion_step& s, const partition& from, const extents& shape, long width,
                                const mesh_shape& mesh) {
  const extents a = local_shape(from, shape, mesh), b = local_shape(after(from, s), shape, mesh);
  const auto around = [](const extents& local, int dim) {
    const cfp::around w = view_around(local, dim);
    return std::to_string(w.outer) + "x" + std::to_string(w.extent) + "x" + std::to_string(w.inner);
  };
  using step = conversion_step;
  // Collectives depend on the links of their axes, all else on the number of pieces alone.
  instruction_kind out{
      std::string(step_names[s.kind]) +
          (s.communicates() ? " over " + axis_names(mesh, s) : " of " + std::to_string(mesh.size(s.axis))),
      {}};
  if (s.kind == step::all_reduce || s.kind == step::mask) out.size = std::to_string(elements(a));
  else if (s.kind == step::all_gather || s.kind == step::pad) out.size = around(b, s.dim);
  else if (s.kind == step::all_to_all) out.size = around(a, s.to) + " to " + around(b, s.dim);
  else out.size = around(a, s.dim);
  if (s.sent_as != compression::none) out.kind.append(" in ").append(name_of(s.sent_as));
  if (width != 4) out.size += " of " + std::to_string(width) + " bytes";
  return out;
}

inline instruction_kind kind_of(const instruction& i, const program& p, const graph& g) {
  const auto width = [&](int b) { return elements(p[b].local) > 0 ? p[b].bytes / elements(p[b].local) : 0; };
  if (i.kind == instruction::reshard)
    return kind_of(i.step, p[i.in[0]].held, g[p[i.in[0]].value].shape, width(i.in[0]), p.mesh);
  if (i.kind == instruction::carry)
    return {p[i.in[0]].on_host ? "carry from the host" : "carry to the host", std::to_string(p[i.in[0]].bytes)};
  if (i.kind == instruction::narrow) {
    long numbers = 0;
    for (const int b : i.in) numbers += elements(p[b].local);
    return {"narrow", std::to_string(numbers)};
  }
  const auto operator_kind = [&](const instruction& of) {
    const call c = bind_call(p, g, of, 0);
    instruction_kind out{std::string(c.op->op->label), {}};
    out.kind.append(template_arguments(*c.op->op)).append(" ");
    const auto put = [&](const pattern& pat, int b) {
      if (p[b].is_view()) out.kind += '~';
      for (const signed char f : pat.factors) out.kind += static_cast<char>('a' + f);
      out.kind += std::to_string(width(b));
    };
    for (int k = 0; k < of.in.size(); ++k) put(c.r().operands[k], of.in[k]);
    out.kind += '>';
    for (int k = 0; k < c.r().results.size(); ++k) put(c.r().results[k], of.out[k]);
    for (int f = 0; f < c.factors; ++f) out.size += (f ? "x" : "") + std::to_string(c.size[f]);
    if (!c.r().coordinates.empty() ||
        c.op->op->body ==
            op_body::routine)  // what they do depends on them: how far a mask reaches, how many are chosen
      for (const double x : c.op->scalars) out.size += " " + nlohmann::json(x).dump();
    return out;
  };
  if (i.fusion < 0) {
    instruction_kind out = operator_kind(i);
    if (i.communicates()) out.kind += " over " + axis_names(p.mesh, i.step);
    return out;
  }
  instruction_kind out;
  if (p.fusions[static_cast<std::size_t>(i.fusion)].pattern < 0) {  // the same on many tensors: how many of each size
    std::map<std::string, int> counts;
    for (const instruction& part : p.parts(i)) {
      const instruction_kind one = operator_kind(part);
      if (out.kind.empty()) out.kind = one.kind.substr(0, one.kind.find(' '));
      ++counts[one.kind.substr(one.kind.find(' ') + 1) + " " + one.size];
    }
    for (const auto& [size, count] : counts)
      out.size.append(out.size.empty() ? "" : ", ").append(std::to_string(count) + " of " + size);
    return out;
  }
  // Fused ones: their operators, what of them is stored ('!'), and the sizes of each.
  for (const instruction& part : p.parts(i)) {
    const instruction_kind one = operator_kind(part);
    out.kind.append(out.kind.empty() ? "" : " + ").append(one.kind);
    for (const int b : part.out)
      for (const int stored : i.out)
        if (p[stored].root == p[b].root) out.kind += '!';
    out.size.append(out.size.empty() ? "" : ", ").append(one.size);
  }
  return out;
}

}  // namespace cfp
