// The same operator on many tensors as one instruction: weights are updated, gradients measured, numbers narrowed by
// one launch for all of them instead of one each.
#pragma once

#include <cfp/program/fuse.hpp>

#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// Instructions that there is one kernel for when there are many of them.
struct same_pattern {
  bool (*fits)(const program&, const graph&, const instruction&) = nullptr;
  bool in_order = false;  ///< one may read what one before it writes
};

namespace detail {

/// Gathers instructions where the first of them stands, as far as that changes nothing.
struct same_fuser {
  program& p;
  const graph& g;
  const same_pattern& pattern;
  const std::vector<int>& roots;
  std::vector<bool>& gone;

  struct use {
    std::vector<int> reads, writes;  // per root: the last group during which that was done
  };
  use within{}, between{};    // by members of the group, by what stays behind its first
  std::vector<int> listed{};  // per root: the last group that lists it
  std::vector<std::size_t> members{};
  int group = 0;

  std::size_t root(int b) const { return static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]); }
  void note(use& u, const instruction& c) const {
    for (const int b : c.in) u.reads[root(b)] = group;
    for (const int b : c.out) u.writes[root(b)] = group;
  }
  bool is(const std::vector<int>& used, int b) const { return used[root(b)] == group; }

  bool joins(const instruction& c) const {
    if (members.empty()) return false;
    const instruction& first = p.code[members[0]];
    if (c.kind != first.kind || (c.kind == instruction::compute && g.at(c.op).op != g.at(first.op).op)) return false;
    for (const int b : c.in)
      if (is(between.writes, b) || (!pattern.in_order && is(within.writes, b))) return false;
    for (const int b : c.out)
      if (is(between.writes, b) || is(between.reads, b) ||
          (!pattern.in_order && (is(within.writes, b) || is(within.reads, b))))
        return false;
    return true;
  }

  // One instruction for all members, in the place of the first.
  void close() {
    if (members.size() > 1) {
      instruction& first = p.code[members[0]];
      fusion f;
      instruction all = first;
      all.in = all.out = {};
      for (const std::size_t m : members) {
        const instruction& c = p.code[m];
        for (const int b : c.in)
          if (c.kind == instruction::narrow || first_time(b)) all.in.push(b);
        for (const int b : c.out) {
          first_time(b);
          all.out.push(b);
        }
        f.parts.push_back(c);
        gone[m] = m != members[0];
      }
      if (all.kind == instruction::compute) {
        f.label = g.at(all.op).op->label;
        f.end = static_cast<int>(f.parts.size());
        all.fusion = static_cast<int>(p.fusions.size());
        p.fusions.push_back(std::move(f));
      }
      first = all;
    }
    members.clear();
    ++group;
  }
  bool first_time(int b) { return std::exchange(listed[root(b)], group) != group; }

  bool fits(const instruction& c) const { return !c.nothing && c.fusion < 0 && pattern.fits(p, g, c); }

  void run() {
    std::size_t end = p.code.size();
    while (end > 0 && !fits(p.code[end - 1])) --end;  // nothing joins from there on
    if (end == 0) return;
    for (use* u : {&within, &between})
      for (std::vector<int>* x : {&u->reads, &u->writes}) x->assign(p.buffers.size(), -1);
    listed.assign(p.buffers.size(), -1);
    auto slot = p.slots.begin();
    for (std::size_t i = 0; i < end; ++i) {
      bool apart = static_cast<int>(i) == p.begin || static_cast<int>(i) == p.end;  // what runs alike often
      for (; slot != p.slots.end() && slot->first == static_cast<int>(i); ++slot) apart = true;
      if (apart) close();
      const instruction& c = p.code[i];
      if (c.nothing) continue;
      if (!fits(c)) {
        if (!members.empty()) note(between, c);
        continue;
      }
      if (!joins(c)) close();
      members.push_back(i);
      note(within, c);
    }
    close();
  }
};

}  // namespace detail

/// Gathers what fits a pattern. After `fuse` and before memory is planned.
inline void fuse_same(program& p, const graph& g, const std::vector<same_pattern>& patterns) {
  const std::vector<int> roots = detail::roots_of(p);
  for (const same_pattern& pattern : patterns) {
    std::vector<bool> gone(p.code.size());
    detail::same_fuser{p, g, pattern, roots, gone}.run();
    detail::erase(p, gone);
  }
}

}  // namespace cfp
