// Fusion: operators of a lowered program that one kernel computes together. What passes between them and is read by
// nothing else gets no memory. Which operators, and how they hang together, is a pattern; the program stays the same
// program.
#pragma once

#include <cfp/program/fuser.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// Leaves out instructions that others stand for.
inline void erase(program& p, const std::vector<bool>& gone) {
  if (std::find(gone.begin(), gone.end(), true) == gone.end()) return;
  std::vector<instruction> code;
  code.reserve(p.code.size());
  int begin = 0, end = 0;
  auto slot = p.slots.begin();
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    for (; slot != p.slots.end() && slot->first == static_cast<int>(i); ++slot)
      slot->first = static_cast<int>(code.size());
    if (gone[i]) continue;
    begin += static_cast<int>(i) < p.begin;
    end += static_cast<int>(i) < p.end;
    code.push_back(std::move(p.code[i]));
  }
  for (; slot != p.slots.end(); ++slot) slot->first = static_cast<int>(code.size());
  p.code = std::move(code);
  p.begin = begin;
  p.end = end;
}

}  // namespace detail

/// Fuses what fits a pattern, the first given first. Before an order is set (`schedule`) and memory is planned.
/// `reads`: of the graph.
inline void fuse(program& p, const graph& g, const std::vector<int>& reads,
                 const std::vector<fusion_pattern>& patterns) {
  std::vector<bool> gone(p.code.size());
  const std::vector<bool> leaves = detail::read_elsewhere(p, g, reads);
  const std::vector<int> roots = detail::roots_of(p);
  const detail::made_again twice(p, roots);
  const detail::root_readers readers(p, roots);
  detail::fusable ops(p, g);
  for (std::size_t n = 0; n < patterns.size(); ++n)
    detail::fuser{p, g, patterns[n], static_cast<int>(n), ops, gone, leaves, roots, twice, readers}.run();
  detail::erase(p, gone);
}

}  // namespace cfp
