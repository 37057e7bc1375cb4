// Who reads what: values of a graph, and the memory of a program.
#pragma once

#include <cfp/program/program.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
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
  std::vector<bool> out(g.values.size());
  long all = 0;
  const auto each = [&](auto&& f) {
    for (const instruction& i : p.code)
      if (i.is_operator())
        for (const instruction& part : p.parts(i))
          if (!part.again) f(g.at(part.op).operands);
  };
  each([&](const auto& operands) { all += operands.size(); });
  if (all == std::accumulate(reads.begin(), reads.end(), 0L)) return out;  // it has them all
  std::vector<int> here;
  here.reserve(static_cast<std::size_t>(all));
  each([&](const auto& operands) { here.insert(here.end(), operands.begin(), operands.end()); });
  std::sort(here.begin(), here.end());
  for (const buffer& b : p.buffers) {
    const auto [first, last] = std::equal_range(here.begin(), here.end(), b.value);
    out[static_cast<std::size_t>(b.value)] = last - first < reads[static_cast<std::size_t>(b.value)];
  }
  return out;
}

/// Per buffer whose memory it shares: what is asked of many buffers, one after another, lies together here.
inline std::vector<int> roots_of(const program& p) {
  std::vector<int> out;
  out.reserve(p.buffers.size());
  for (const buffer& b : p.buffers) out.push_back(b.root);
  return out;
}

/// Per root the instructions that read it, in order.
class root_readers {
 public:
  root_readers(const program& p, const std::vector<int>& roots) : begin_(p.buffers.size() + 1) {
    const auto each = [&](auto&& f) {
      for (std::size_t i = 0; i < p.code.size(); ++i)
        for (const int b : p.code[i].in)
          f(static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]), static_cast<int>(i));
    };
    each([&](std::size_t root, int) { ++begin_[root + 1]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    all_.resize(begin_.back());
    std::vector<std::size_t> end(begin_.begin(), begin_.end() - 1);
    each([&](std::size_t root, int i) { all_[end[root]++] = i; });
  }
  std::span<const int> operator[](int root) const {
    const auto r = static_cast<std::size_t>(root);
    return std::span(all_).subspan(begin_[r], begin_[r + 1] - begin_[r]);
  }

 private:
  std::vector<std::size_t> begin_;  // of each root
  std::vector<int> all_;
};

}  // namespace detail

}  // namespace cfp
