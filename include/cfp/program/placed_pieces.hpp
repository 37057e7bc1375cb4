// Pieces of an arena that are given away, each for a stretch of a program, and what is free beside them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace cfp::inline v0_1 {

inline constexpr long memory_alignment = 64;

/// First and last instruction while which a buffer's memory is in use: of collectives beside, until they are known to
/// be done.
struct lifetime {
  int from = -1, to = -1;
};

namespace detail {

/// Addresses that are taken, as ranges that lie apart, ascending.
class address_ranges {
 public:
  /// The lowest place from `at` on that is free for so many bytes.
  long lowest(long at, long bytes) const {
    auto r = std::upper_bound(all_.begin(), all_.end(), at, [](long a, const range& x) { return a < x.to; });
    for (; r != all_.end() && r->from < at + bytes; ++r) at = r->to;
    return at;
  }
  void add(long from, long to) {
    const auto first =
        std::lower_bound(all_.begin(), all_.end(), from, [](const range& x, long a) { return x.to < a; });
    if (first == all_.end() || to < first->from) {
      all_.insert(first, {from, to});
      return;
    }
    auto last = first;
    for (; last != all_.end() && last->from <= to; ++last) to = std::max(to, last->to);
    *first = {std::min(from, first->from), to};
    all_.erase(first + 1, last);
  }
  bool empty() const { return all_.empty(); }

 private:
  struct range {
    long from, to;
  };
  std::vector<range> all_;
};

/// Pieces of the arena that are given away. Time is cut into stretches, and a tree over them (a segment tree) knows
/// what is taken throughout a node and what at some time in it; of the two stretches in which a piece begins and ends,
/// what is taken when is listed.
class placed_pieces {
 public:
  struct piece {
    lifetime when;
    long from, to;  // in the arena
  };

  explicit placed_pieces(int instructions)
      : leaves_(std::bit_ceil(static_cast<unsigned>(instructions / stretch + 1))), ends_in_(leaves_),
        throughout_(2 * leaves_), sometime_(2 * leaves_) {}

  /// The lowest place that is free for so long.
  long lowest(const lifetime& when, long bytes) {
    const std::size_t first = stretch_of(when.from), last = stretch_of(when.to);
    asked_.clear();
    between(first, last, [&](std::size_t node) { ask(sometime_[node]); });
    above(first, last, [&](std::size_t node) { ask(throughout_[node]); });
    long at = 0;
    for (long before = -1; before != at;) {
      before = at;
      for (std::size_t i = asked_.size(); i-- > 0;) at = asked_[i]->lowest(at, bytes);  // long stretches first
      at = past(first, when, at, bytes);
      if (last != first) at = past(last, when, at, bytes);
    }
    return at;
  }

  void put(const piece& p) {
    const std::size_t first = stretch_of(p.when.from), last = stretch_of(p.when.to);
    const piece whole{p.when, p.from, (p.to + memory_alignment - 1) / memory_alignment * memory_alignment};
    insert(ends_in_[first], whole);
    if (last != first) insert(ends_in_[last], whole);
    between(first, last, [&](std::size_t node) {
      throughout_[node].add(whole.from, whole.to);
      sometime_[node].add(whole.from, whole.to);
    });
    above(first, last, [&](std::size_t node) { sometime_[node].add(whole.from, whole.to); });
  }

 private:
  static constexpr int stretch = 32;  // instructions
  static std::size_t stretch_of(int instruction) { return static_cast<std::size_t>(instruction / stretch); }

  // Nodes that together are the stretches between two.
  template <class F>
  void between(std::size_t first, std::size_t last, F&& f) const {
    for (std::size_t a = first + 1 + leaves_, b = last + leaves_; a < b; a /= 2, b /= 2) {
      if (a % 2 == 1) f(a++);
      if (b % 2 == 1) f(--b);
    }
  }
  // Nodes that one of two stretches is in: those above what is between them, too.
  template <class F>
  void above(std::size_t first, std::size_t last, F&& f) const {
    for (std::size_t a = first + leaves_, b = last + leaves_; b > 0; a /= 2, b /= 2) {
      f(a);
      if (a != b) f(b);
    }
  }
  void ask(const address_ranges& taken) {
    if (!taken.empty()) asked_.push_back(&taken);
  }
  // The lowest free place from `at` on, as far as pieces take it that begin or end in a stretch.
  long past(std::size_t of, const lifetime& when, long at, long bytes) const {
    for (const piece& p : ends_in_[of]) {
      if (p.from >= at + bytes) break;
      if (p.when.to >= when.from && when.to >= p.when.from) at = std::max(at, p.to);
    }
    return at;
  }
  static void insert(std::vector<piece>& into, const piece& p) {
    into.insert(
        std::upper_bound(into.begin(), into.end(), p, [](const piece& x, const piece& y) { return x.from < y.from; }),
        p);
  }

  std::size_t leaves_;
  std::vector<std::vector<piece>> ends_in_;            // each stretch, by where they begin
  std::vector<address_ranges> throughout_, sometime_;  // each node; that of all stretches is 1, below it 2n and 2n + 1
  std::vector<const address_ranges*> asked_;
};

}  // namespace detail

}  // namespace cfp
