// Where a pattern of operators is found in a program, and the instructions that stand for it there.
#pragma once

#include <cfp/program/fusable.hpp>
#include <cfp/program/fusion_pattern.hpp>
#include <cfp/program/made_again.hpp>
#include <cfp/program/readers.hpp>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::detail {

struct fuser {
  program& p;
  const graph& g;
  const fusion_pattern& pattern;
  int number = 0;                   // of the pattern
  fusable& ops;                     // what is part of others is none
  std::vector<bool>& gone;          // instructions that are part of others
  const std::vector<bool>& leaves;  // values that are read by operations that the program does not have
  const std::vector<int>& roots;
  const made_again& twice;
  const root_readers& readers;  // as it was before: nobody asks for readers of what fused instructions compute
  std::vector<int> at{};        // per part: its instruction
  std::vector<int> outside{}, bound_now{};  // per number: the buffer, or -1
  std::vector<int> later{}, later_now{};    // the same, as the second group reads it

  int parts() const { return static_cast<int>(pattern.parts.size()); }
  instruction& code(int i) { return p.code[static_cast<std::size_t>(i)]; }
  const instruction& of_part(int k) const { return p.code[static_cast<std::size_t>(at[static_cast<std::size_t>(k)])]; }
  int range(int i) const { return i < p.begin ? 0 : i < p.end ? 1 : 2; }
  int root(int b) const { return roots[static_cast<std::size_t>(b)]; }
  int pass_of(const instruction& c) const { return p[c.out[0]].pass; }
  // Whether two buffers hold the same, if only because one was computed again.
  bool equal(int a, int b) const { return twice.first_of(root(a)) == twice.first_of(root(b)); }

  // Whether instruction i can be part k, and binds what it reads.
  bool binds(int i, int k) {
    const fusion_part& part = pattern.parts[static_cast<std::size_t>(k)];
    if (!ops.is(i, part.op)) return false;
    const instruction& c = code(i);
    if (k > 0 && pass_of(c) != pass_of(of_part(0))) return false;
    if (const int first = first_of(group_of(k)); k > first && c.again != of_part(first).again) return false;
    if (c.in.size() != part.from.size() || (part.is != nullptr && !part.is(g.at(c.op)))) return false;
    std::vector<int>& now = bound_now;
    now = outside;
    later_now = later;
    const bool is_later = group_of(k) == 1;
    for (int x = 0; x < c.in.size(); ++x) {
      const int from = part.from[x];
      if (from < 0) {
        if (const int made = root(of_part(~from).out[0]);
            root(c.in[x]) != made && !(is_later && root(c.in[x]) == twice.copy_of(made)))
          return false;
        continue;
      }
      if (is_result(c.in[x])) return false;  // y + y is no y + something else
      if (static_cast<std::size_t>(from) >= now.size()) now.resize(static_cast<std::size_t>(from) + 1, -1);
      int& bound = now[static_cast<std::size_t>(from)];
      if (bound >= 0 && root(bound) != root(c.in[x]) && !(is_later && equal(bound, c.in[x]))) return false;
      if (bound < 0) bound = c.in[x];
      if (is_later) {
        later_now.resize(std::max(later_now.size(), now.size()), -1);
        int& bound_later = later_now[static_cast<std::size_t>(from)];
        if (bound_later >= 0 && root(bound_later) != root(c.in[x])) return false;
        bound_later = c.in[x];
      }
    }
    outside = now;
    later = later_now;
    return true;
  }

  // Whether one of the parts found so far computes a buffer.
  bool is_result(int b) const {
    for (std::size_t k = 0; k < at.size(); ++k)
      for (const int x : of_part(static_cast<int>(k)).out)
        if (root(x) == root(b)) return true;
    return false;
  }

  // The parts from instruction i on. A part with an operand from within is the next instruction that fits; other
  // instructions may stand between.
  bool find(int i) {
    at.clear();
    outside.clear();
    later.clear();
    for (int k = 0; k < parts(); ++k) {
      int found = -1;
      const bool anywhere = k == pattern.second && k > 0;
      const int last = k == 0     ? i
                       : anywhere ? static_cast<int>(p.code.size()) - 1
                                  : std::min<int>(at.back() + 16, static_cast<int>(p.code.size()) - 1);
      if (const int bound = anywhere ? bound_root(k) : -1; bound >= 0) {
        const std::span<const int> some = readers[twice.last_of(bound)];
        for (auto j = std::upper_bound(some.begin(), some.end(), at.back()); j != some.end() && found < 0; ++j)
          if (binds(*j, k)) found = *j;
      } else {
        for (int j = k == 0 ? i : at.back() + 1; j <= last && found < 0; ++j)
          if (binds(j, k)) found = j;
      }
      if (found < 0 || range(found) != range(i)) return false;
      at.push_back(found);
    }
    const int groups = pattern.second > 0 ? 2 : 1;
    for (int group = 0; group < groups; ++group)
      if (!movable(group)) return false;
    return true;
  }

  // Something part k must read, as far as that is bound by now: a root, or -1.
  int bound_root(int k) const {
    for (const int from : pattern.parts[static_cast<std::size_t>(k)].from) {
      if (from < 0) return root(of_part(~from).out[0]);
      if (static_cast<std::size_t>(from) < outside.size() && outside[static_cast<std::size_t>(from)] >= 0)
        return root(outside[static_cast<std::size_t>(from)]);
    }
    return -1;
  }

  int group_of(int part) const { return pattern.second > 0 && part >= pattern.second ? 1 : 0; }
  int first_of(int group) const { return group == 0 ? 0 : pattern.second; }
  int end_of(int group) const { return group == 0 && pattern.second > 0 ? pattern.second : parts(); }

  // Parts run where the last one stands: nothing before may read what they write, or write what they read or write.
  bool movable(int group) const {
    const int last = at[static_cast<std::size_t>(end_of(group) - 1)];
    for (int k = first_of(group); k < end_of(group); ++k) {
      const instruction& part = of_part(k);
      for (int i = at[static_cast<std::size_t>(k)] + 1; i < last; ++i) {
        if (std::find(at.begin(), at.end(), i) != at.end()) continue;
        const instruction& between = p.code[static_cast<std::size_t>(i)];
        for (const int b : between.out) {
          for (const int x : part.in)
            if (root(b) == root(x)) return false;
          for (const int x : part.out)
            if (root(b) == root(x)) return false;
        }
        for (const int b : between.in)
          for (const int x : part.out)
            if (root(b) == root(x)) return false;
      }
    }
    return true;
  }

  // Whether anything but the parts of the given groups reads a buffer.
  bool is_read(int b, bool by_second) const {
    if (p[b].persistent || leaves[static_cast<std::size_t>(p[b].value)] || (p.loss >= 0 && root(p.loss) == root(b)))
      return true;
    for (const int i : readers[root(b)]) {
      const auto part = std::find(at.begin(), at.end(), i);
      if (part != at.end() && (by_second || part - at.begin() < end_of(0))) continue;
      for (const int x : p.code[static_cast<std::size_t>(i)].in)
        if (root(x) == root(b)) return true;
    }
    return false;
  }

  bool needed(int part) const {
    return std::find(pattern.needs.begin(), pattern.needs.end(), ~part) != pattern.needs.end();
  }

  // The instruction that stands for a group.
  instruction make(int group) const {
    instruction out;
    const auto read = [&](int b) {
      for (const int x : out.in)
        if (root(x) == root(b)) return;
      out.in.push(b);
    };
    out.op = of_part(end_of(group) - 1).op;
    out.again = of_part(end_of(group) - 1).again;
    for (int k = first_of(group); k < end_of(group); ++k) {
      const fusion_part& part = pattern.parts[static_cast<std::size_t>(k)];
      for (int x = 0; x < part.from.size(); ++x)
        if (part.from[x] >= 0) read(of_part(k).in[x]);
      for (const int b : of_part(k).out)
        if (is_read(b, true) || (group == 0 && needed(k))) out.out.push(b);
    }
    if (group == 1)
      for (const int n : pattern.needs) read(n >= 0 ? read_later(static_cast<std::size_t>(n)) : left_by(~n));
    return out;
  }
  // What a part of the first group computed, where the second finds it.
  int left_by(int part) const {
    const int made = of_part(part).out[0], copy = twice.copy_of(root(made));
    return copy >= 0 ? copy : made;
  }
  int read_later(std::size_t n) const { return n < later.size() && later[n] >= 0 ? later[n] : outside[n]; }
  // What comes from outside, in a fusion of the second group.
  void read_all_later(fusion& f) const {
    for (std::size_t n = 0; n < f.outside.size(); ++n) f.outside[n] = read_later(n);
    for (std::size_t k = 0; k < f.parts.size(); ++k)
      for (int x = 0; x < f.parts[k].in.size(); ++x)
        if (const int from = pattern.parts[k].from[x]; from >= 0)
          f.parts[k].in[x] = f.outside[static_cast<std::size_t>(from)];
  }

  bool can_store(int part) const {
    if (!pattern.stores.empty())
      return std::find(pattern.stores.begin(), pattern.stores.end(), part) != pattern.stores.end();
    return part >= pattern.second || needed(part);
  }
  // What cannot be stored must not be read.
  bool separable() const {
    for (int k = 0; k < parts(); ++k)
      for (const int b : of_part(k).out)
        if (!can_store(k) && is_read(b, true)) return false;
    return true;
  }

  void run() {
    for (const int i : ops.all(pattern.parts[0].op)) {
      if (ops.op[static_cast<std::size_t>(i)] == nullptr || !find(i) || !separable()) continue;
      fusion f;
      f.label = pattern.label;
      f.pattern = number;
      f.outside = outside;
      for (int k = 0; k < parts(); ++k) f.parts.push_back(of_part(k));
      if (pattern.fits && !pattern.fits(p, g, f)) continue;
      const int groups = pattern.second > 0 ? 2 : 1;
      instruction made[2];
      for (int group = 0; group < groups; ++group) made[group] = make(group);
      for (int group = 0; group < groups; ++group) {
        made[group].fusion = static_cast<int>(p.fusions.size());
        f.first = first_of(group);
        f.end = end_of(group);
        if (group == 1) read_all_later(f);
        p.fusions.push_back(f);
        for (int k = f.first; k < f.end; ++k) {
          const auto i_of_part = static_cast<std::size_t>(at[static_cast<std::size_t>(k)]);
          gone[i_of_part] = k + 1 < f.end;
          ops.op[i_of_part] = nullptr;
        }
        code(at[static_cast<std::size_t>(f.end - 1)]) = made[group];
      }
    }
  }
};

}  // namespace cfp::detail
