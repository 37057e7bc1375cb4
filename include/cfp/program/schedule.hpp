// The order of a program: conversions begin as early as that pays, and collectives may run beside the work that follows
// them.
#pragma once

#include <cfp/program/readers.hpp>

#include <algorithm>
#include <utility>

namespace cfp::inline v0_1 {

struct schedule {
  bool early =
      true;  ///< what is reduced or cut is so as soon as it is there: gradients need not wait whole for their update
  bool overlap =
      false;      ///< collectives run on a stream of their own, in order, beside the operators that do not need them
  int ahead = 1;  ///< with overlap: how many gathers may be under way before the first of them is needed
};

/// What the two streams of a program wait for. A collective that runs beside waits for all operators before it in the
/// program, and for the collectives before it (sends and receives among them, wherever `schedule` has them run); an
/// operator for the last collective whose memory it touches, and, where
/// something is on its way to the host, for what went there before: so its memory is free from then on.
struct stream_order {
  std::vector<int> waits_for;  ///< per instruction: the last collective beside it that must be done, or -1
  std::vector<int> joined;  ///< per collective that runs beside: the first instruction that is known to follow its end
};

inline stream_order order_of(const program& p) {
  stream_order out;
  out.waits_for.assign(p.code.size(), -1);
  out.joined.assign(p.code.size(), -1);
  const std::vector<int> roots = detail::roots_of(p);
  std::vector<int> touched(p.buffers.size(), -1), beside;
  std::size_t first = 0;  // of those beside that are under way
  int to_host = -1, before_that = -1;
  const auto join = [&](int upto, int at) {
    for (; first < beside.size() && beside[first] <= upto; ++first)
      out.joined[static_cast<std::size_t>(beside[first])] = at;
  };
  for (std::size_t i = 0; i < p.code.size(); ++i) {
    const int at = static_cast<int>(i);
    const instruction& c = p.code[i];
    if (at == p.begin || at == p.end) join(at, at);  // nothing is under way from one pass to the next
    const auto each = [&](const auto& f) {
      for (const int b : c.in) f(static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]));
      for (const int b : c.out) f(static_cast<std::size_t>(roots[static_cast<std::size_t>(b)]));
    };
    if (c.beside) {
      each([&](std::size_t b) { touched[b] = at; });
      beside.push_back(at);
      if (p.sets_aside(c)) before_that = std::exchange(to_host, at);
      continue;
    }
    int& last = out.waits_for[i];
    each([&](std::size_t b) {
      if (first < beside.size() && touched[b] >= beside[first]) last = std::max(last, touched[b]);
    });
    if (first < beside.size() && before_that >= beside[first]) last = std::max(last, before_that);
    if (last >= 0) join(last, at);
  }
  join(static_cast<int>(p.code.size()), static_cast<int>(p.code.size()));
  return out;
}

namespace detail {

// Per instruction the first of those it may change places with: not with what runs less often, nor with what another
// stage or micro-batch has to do.
inline std::vector<int> ranges_of(const program& p) {
  std::vector<int> out(p.code.size());
  auto slot = p.slots.begin();
  int first = 0;
  for (int i = 0; i < static_cast<int>(out.size()); ++i) {
    const bool apart =
        i > 0 && (p.code[static_cast<std::size_t>(i)].crosses() || p.code[static_cast<std::size_t>(i) - 1].crosses());
    if (i == p.begin || i == p.end || apart) first = i;
    for (; slot != p.slots.end() && slot->first == i; ++slot) first = i;
    out[static_cast<std::size_t>(i)] = first;
  }
  return out;
}

}  // namespace detail

/// Puts the instructions of a lowered program in that order. Before its memory is planned.
inline void apply(const schedule& s, program& p) {
  const int size = static_cast<int>(p.code.size());
  std::vector<int> written(p.buffers.size(), -1);  // by root: the last instruction that wrote it
  std::vector<double> place(p.code.size());        // instructions are sorted by this
  std::vector<int> gathers;
  const std::vector<int> range = detail::ranges_of(p);
  std::vector<bool> feeds(p.code.size());  // a local step that a collective follows
  {
    std::vector<int> made_by(p.buffers.size(), -1);
    for (int i = 0; i < size; ++i) {
      const instruction& c = p.code[static_cast<std::size_t>(i)];
      if (c.crosses()) continue;
      if (c.communicates())
        for (int at = made_by[static_cast<std::size_t>(c.in[0])]; at >= 0 && !feeds[static_cast<std::size_t>(at)];
             at = made_by[static_cast<std::size_t>(p.code[static_cast<std::size_t>(at)].in[0])])
          feeds[static_cast<std::size_t>(at)] = true;
      if (c.kind != instruction::compute && !p.sets_aside(c)) made_by[static_cast<std::size_t>(c.out[0])] = i;
    }
  }
  for (int i = 0; i < size; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const instruction& c = p.code[at];
    place[at] = i;
    const bool communicates = c.may_run_beside();
    if (c.kind != instruction::compute && !c.crosses() && (communicates || feeds[at]) && !p.sets_aside(c)) {
      double earliest = range[at] - 0.5;
      for (const int b : c.in)
        if (const int w = written[static_cast<std::size_t>(p[b].root)]; w >= 0)
          earliest = std::max(earliest, place[static_cast<std::size_t>(w)]);
      const bool grows = c.kind == instruction::narrow || p[c.in[0]].on_host || p[c.out[0]].bytes > p[c.in[0]].bytes;
      if (grows || !communicates) {  // no earlier than where the gather before it, or so many before it, was needed
        const auto before = static_cast<std::size_t>(std::max(1, s.ahead));
        const double bound = !s.overlap                 ? i
                             : gathers.size() >= before ? gathers[gathers.size() - before]
                                                        : range[at] - 0.5;
        earliest = std::max(earliest, bound);
        if (communicates) gathers.push_back(i);
      } else if (!s.early) {
        earliest = i;
      }
      place[at] = std::min(earliest, place[at]);
    }
    for (const int b : c.out) written[static_cast<std::size_t>(p[b].root)] = i;
  }
  std::vector<int> order(p.code.size());
  for (int i = 0; i < size; ++i) order[static_cast<std::size_t>(i)] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return place[static_cast<std::size_t>(a)] < place[static_cast<std::size_t>(b)];
  });
  std::vector<instruction> code;
  code.reserve(p.code.size());
  for (const int i : order) {
    code.push_back(std::move(p.code[static_cast<std::size_t>(i)]));
    instruction& c = code.back();
    c.beside = c.crosses() || (s.overlap && c.may_run_beside());
  }
  p.code = std::move(code);
}

}  // namespace cfp
