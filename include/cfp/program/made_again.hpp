// Which memory of a program holds what was computed before, once more: computed again, or brought back from the host.
#pragma once

#include <cfp/program/program.hpp>

#include <cstddef>
#include <map>
#include <numeric>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Pairs of roots: what forward wrote, and what backward writes when that is computed again.
class made_again {
 public:
  made_again(const program& p, const std::vector<int>& roots)
      : first_(p.buffers.size()), last_(p.buffers.size()), copy_(p.buffers.size(), -1) {
    std::iota(first_.begin(), first_.end(), 0);
    std::iota(last_.begin(), last_.end(), 0);
    find_copies(p, roots);
    const std::vector<int> again = find_again(p, roots);
    if (again.empty()) return;
    std::vector<bool> is_again(p.buffers.size());
    std::map<int, std::vector<int>> of_value;  // roots that forward wrote, of values that are computed again
    for (const int root : again) is_again[static_cast<std::size_t>(root)] = true, of_value[p[root].value];
    for (const instruction& i : p.code)
      for (const int b : i.out) {
        const int root = roots[static_cast<std::size_t>(b)];
        const auto at = of_value.find(p[root].value);
        if (at != of_value.end() && !is_again[static_cast<std::size_t>(root)]) at->second.push_back(root);
      }
    for (const int root : again)
      for (const int before : of_value[p[root].value])
        if (p[before].held == p[root].held && p[before].type == p[root].type && p[before].pass == p[root].pass &&
            !p[before].on_host) {
          first_[static_cast<std::size_t>(root)] = before;
          last_[static_cast<std::size_t>(before)] = root;
          break;
        }
  }

  /// Where forward held what a root holds; itself, if that is not computed again.
  int first_of(int root) const { return first_[static_cast<std::size_t>(root)]; }
  /// Where backward holds it.
  int last_of(int root) const { return last_[static_cast<std::size_t>(root)]; }
  /// The buffer in which what a root held came back from the host; -1 if it did not.
  int copy_of(int root) const { return copy_[static_cast<std::size_t>(root)]; }

 private:
  // What is computed again, and what that is converted to.
  static std::vector<int> find_again(const program& p, const std::vector<int>& roots) {
    std::vector<int> out;
    std::vector<bool> found(p.buffers.size());
    const auto root = [&](int b) { return static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]); };
    for (const instruction& i : p.code)
      if (i.again || (i.kind == instruction::reshard && found[root(i.in[0])]))
        for (const int b : i.out)
          if (!found[root(b)]) found[root(b)] = true, out.push_back(static_cast<int>(root(b)));
    return out;
  }

  void find_copies(const program& p, const std::vector<int>& roots) {
    std::map<int, int> from;  // of what is on the host: the root it was in
    for (const instruction& i : p.code) {
      if (i.kind != instruction::carry || p[i.in[0]].persistent || p[i.out[0]].persistent) continue;
      if (p.sets_aside(i)) from[i.out[0]] = roots[static_cast<std::size_t>(i.in[0])];
      else if (const auto at = from.find(i.in[0]); at != from.end())
        copy_[static_cast<std::size_t>(at->second)] = i.out[0];
    }
  }

  std::vector<int> first_, last_, copy_;
};

}  // namespace cfp::detail
