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

/// Pieces of the arena that are given away. A tree over the instructions (a segment tree) knows of each node, a stretch
/// of them, what is taken throughout and what at some time. Brief pieces, of which there are most, are in nodes of some
/// length only; below they are listed.
class placed_pieces {
 public:
  struct piece {
    lifetime when;
    long from, to;  // in the arena
  };

  explicit placed_pieces(int instructions)
      : leaves_(std::bit_ceil(static_cast<unsigned>(instructions + 1))), throughout_(2 * leaves_, -1),
        sometime_(leaves_, -1), brief_(leaves_ / brief + 1) {}

  /// The lowest place that is free for so long.
  long lowest(const lifetime& when, long bytes) {
    asked_.clear();
    within(when, [&](std::size_t node) { ask(node < leaves_ ? sometime_[node] : throughout_[node]); });
    above(when, [&](std::size_t node) { ask(throughout_[node]); });
    const std::size_t first = at(when.from) / brief, last = at(when.to) / brief;
    long out = 0;
    for (long before = -1; before != out;) {
      before = out;
      for (std::size_t i = asked_.size(); i-- > 0;)  // long stretches first
        out = ranges_[static_cast<std::size_t>(asked_[i])].lowest(out, bytes);
      out = past(brief_[first], when, out, bytes);
      if (last != first) out = past(brief_[last], when, out, bytes);
    }
    return out;
  }

  void put(const piece& p) {
    const piece whole{p.when, p.from, (p.to + memory_alignment - 1) / memory_alignment * memory_alignment};
    const auto add = [&](int& to) { ranges(to).add(whole.from, whole.to); };
    const std::size_t first = at(p.when.from), last = at(p.when.to);
    const bool is_brief = last - first < brief;
    above(p.when, [&](std::size_t node) {
      if (!is_brief || node < 2 * leaves_ / brief) add(sometime_[node]);
    });
    if (is_brief) {
      insert(brief_[first / brief], whole);
      if (last / brief != first / brief) insert(brief_[last / brief], whole);
      return;
    }
    within(p.when, [&](std::size_t node) {
      add(throughout_[node]);
      if (node < leaves_) add(sometime_[node]);
    });
  }

 private:
  static constexpr std::size_t brief = 32;  // instructions
  static std::size_t at(int instruction) { return static_cast<std::size_t>(instruction); }

  // Nodes that together are a lifetime.
  template <class F>
  void within(const lifetime& when, F&& f) const {
    for (std::size_t a = at(when.from) + leaves_, b = at(when.to) + 1 + leaves_; a < b; a /= 2, b /= 2) {
      if (a % 2 == 1) f(a++);
      if (b % 2 == 1) f(--b);
    }
  }
  // Nodes above its first and last instruction: all above those, too.
  template <class F>
  void above(const lifetime& when, F&& f) const {
    for (std::size_t a = (at(when.from) + leaves_) / 2, b = (at(when.to) + leaves_) / 2; a > 0; a /= 2, b /= 2) {
      f(a);
      if (a != b) f(b);
    }
  }
  void ask(int of) {
    if (of >= 0) asked_.push_back(of);
  }
  address_ranges& ranges(int& of) {
    if (of < 0) {
      of = static_cast<int>(ranges_.size());
      ranges_.emplace_back();
    }
    return ranges_[static_cast<std::size_t>(of)];
  }
  // The lowest place from `from` on that these leave free.
  static long past(const std::vector<piece>& some, const lifetime& when, long from, long bytes) {
    for (const piece& p : some) {
      if (p.from >= from + bytes) break;
      if (p.when.to >= when.from && when.to >= p.when.from) from = std::max(from, p.to);
    }
    return from;
  }
  static void insert(std::vector<piece>& into, const piece& p) {
    into.insert(
        std::upper_bound(into.begin(), into.end(), p, [](const piece& x, const piece& y) { return x.from < y.from; }),
        p);
  }

  std::size_t leaves_;
  std::vector<int> throughout_, sometime_;  // ranges of each node; all instructions are node 1, its halves 2 and 3
  std::vector<address_ranges> ranges_;
  std::vector<std::vector<piece>> brief_;  // that begin or end in so many instructions, by where they begin
  std::vector<int> asked_;
};

}  // namespace detail

}  // namespace cfp
