// Who reads what: values of a graph, and the memory of a program.
#pragma once

#include <cfp/program/program.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

/// How often operations read each value.
inline std::vector<int> reads_of(const graph& g) {
  std::vector<int> out(g.values.size());
  for (const operation& o : g.operations)
    for (const int v : o.operands) ++out[static_cast<std::size_t>(v)];
  return out;
}

namespace detail {

/// Per value that has a buffer: whether operations read it that the program does not have. `reads`: of the graph.
inline std::vector<bool> read_elsewhere(const program& p, const graph& g, const std::vector<int>& reads) {
  std::vector<int> here;
  for (const instruction& i : p.code)
    if (i.kind == instruction::compute)
      for (const instruction& part : p.parts(i))
        here.insert(here.end(), g.at(part.op).operands.begin(), g.at(part.op).operands.end());
  std::sort(here.begin(), here.end());
  std::vector<bool> out(g.values.size());
  for (const buffer& b : p.buffers) {
    const auto [first, last] = std::equal_range(here.begin(), here.end(), b.value);
    out[static_cast<std::size_t>(b.value)] = last - first < reads[static_cast<std::size_t>(b.value)];
  }
  return out;
}

/// Per root the instructions that read it, in order; some may have become others by now, which read less.
class root_readers {
 public:
  explicit root_readers(const program& p) : p_(p), of_(p.buffers.size()) {
    for (std::size_t i = 0; i < p.code.size(); ++i) add(static_cast<int>(i));
  }
  const std::vector<int>& operator[](int root) const { return of_[static_cast<std::size_t>(root)]; }
  /// Instruction i as it reads now.
  void add(int i) {
    for (const int b : p_.code[static_cast<std::size_t>(i)].in) {
      std::vector<int>& all = of_[static_cast<std::size_t>(p_[b].root)];
      const auto at = std::lower_bound(all.begin(), all.end(), i);
      if (at == all.end() || *at != i) all.insert(at, i);
    }
  }

 private:
  const program& p_;
  std::vector<std::vector<int>> of_;
};

}  // namespace detail

}  // namespace cfp
