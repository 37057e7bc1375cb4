// The memory a step of a conversion works in, beside its operand and its result.
#pragma once

#include <cfp/program/around.hpp>
#include <cfp/program/compressed_sum.hpp>
#include <cfp/program/program.hpp>

#include <algorithm>

namespace cfp::inline v0_1 {

/// Of an instruction whose operand and first result are there: buffers that `allocate(bytes)` gives, by number.
template <class Allocate>
constexpr void add_scratch(program& p, instruction& i, const Allocate& allocate) {
  const long before = p[i.in[0]].bytes, after = p[i.out[0]].bytes, numbers = elements(p[i.in[0]].local);
  for (int k = scratch_buffers(i.step, p[i.in[0]].local); k > 0; --k) i.out.push(allocate(std::max(before, after)));
  if (i.step.sent_as == compression::none) return;
  const compressed_sum s(i.step, numbers, i.step.devices(p.mesh));
  i.out.push(allocate(s.scratch_bytes()));
  const int rest = allocate(s.left_over() * (before / numbers));
  p[rest].persistent = p[rest].left_over = true;
  i.out.push(rest);
}

}  // namespace cfp
