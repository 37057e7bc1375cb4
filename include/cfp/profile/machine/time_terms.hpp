// Where the time of a step goes: named terms that sum up to it.
#pragma once

#include <cfp/core/collective.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/profile/machine/stream_events.hpp>
#include <cfp/program/handed.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// One of them, milliseconds.
struct time_term {
  std::string name{};
  double ms = 0;      ///< of the step
  double beside = 0;  ///< of communication: what ran while operators worked, whose time the step has already
};

namespace detail {

enum class term_kind : std::size_t { forward, again, backward, update, contention, host, idle, collective };
inline constexpr std::array<const char*, 7> term_names = {"forward",    "forward again",        "backward", "update",
                                                          "contention", "to and from the host", "idle"};

inline std::size_t term_of(const instruction& i, const graph& g) {
  const auto number = [](term_kind k) { return static_cast<std::size_t>(k); };
  const auto collective = [&](std::size_t kind) { return number(term_kind::collective) + kind; };
  if (i.communicates()) return collective(static_cast<std::size_t>(collective_of(i, g)));
  if (i.crosses()) return collective(collective_names.size() - 1);
  if (i.kind == instruction::carry) return number(term_kind::host);
  if (i.again) return number(term_kind::again);
  if (i.op < 0) return number(term_kind::update);
  switch (g.at(i.op).when) {
    case phase::forward: return number(term_kind::forward);
    case phase::backward: return number(term_kind::backward);
    case phase::update: break;
  }
  return number(term_kind::update);
}

// What each stream does at a moment, as moments go on.
class stream_cursor {
 public:
  explicit stream_cursor(const std::vector<stream_event>& work) {
    for (const stream_event& e : work) {
      const auto n = static_cast<std::size_t>(e.stream + 1);
      if (streams_.size() <= n) streams_.resize(n + 1);
      streams_[n].events.push_back(&e);
    }
  }
  /// Of stream `n` - 1; or nullptr.
  const stream_event* at(std::size_t n, double ms) {
    stream& s = streams_[n];
    while (s.next < s.events.size() && s.events[s.next]->end <= ms) ++s.next;
    return s.next < s.events.size() && s.events[s.next]->begin <= ms ? s.events[s.next] : nullptr;
  }
  std::size_t size() const { return streams_.size(); }

 private:
  struct stream {
    std::vector<const stream_event*> events;
    std::size_t next = 0;
  };
  std::vector<stream> streams_;
};

}  // namespace detail

/// Of a program whose streams did what `seen` says in a step of `ms` milliseconds; `alone[i]` is the time of its
/// instruction i by itself. They sum up to the step: what operators take alone in each phase, by how much communication
/// beside them makes that longer ("contention", what a stream waits to go on among it), the part of each kind of
/// communication in which no operator works, and what is left, "idle": in a pipeline the bubble. Terms of no time are
/// left out. (After the decoupled time model of "Automatically Planning Optimal Parallel Strategy", arXiv 2501.00254,
/// whose overlap is `beside`.)
inline std::vector<time_term> time_terms(const program& p, const graph& g, const stream_events& seen,
                                         const std::vector<double>& alone, double ms) {
  using detail::term_kind;
  constexpr auto first = static_cast<std::size_t>(term_kind::collective);
  std::array<time_term, first + collective_names.size()> all;
  const auto of = [&](const stream_event& e) -> time_term& {
    return all[detail::term_of(p.code[static_cast<std::size_t>(e.instruction)], g)];
  };
  std::vector<double> moments{0, ms};
  for (const stream_event& e : seen.work) moments.insert(moments.end(), {e.begin, e.end});
  std::sort(moments.begin(), moments.end());
  detail::stream_cursor streams(seen.work);
  for (std::size_t m = 1; m < moments.size(); ++m) {
    const double passed = moments[m] - moments[m - 1];
    if (!(passed > 0)) continue;
    bool taken = false;
    for (std::size_t n = 0; n < streams.size(); ++n)
      if (const stream_event* e = streams.at(n, moments[m - 1]))
        (taken ? of(*e).beside : of(*e).ms) += passed, taken = true;
    if (!taken) all[static_cast<std::size_t>(term_kind::idle)].ms += passed;
  }
  for (const stream_event& e : seen.work) {
    const auto at = static_cast<std::size_t>(e.instruction);
    if (e.stream >= 0 || p.code[at].may_run_beside()) continue;
    const double longer = e.end - e.begin - alone[at];
    of(e).ms -= longer, all[static_cast<std::size_t>(term_kind::contention)].ms += longer;
  }
  std::vector<time_term> out;
  for (std::size_t n = 0; n < all.size(); ++n) {
    if (!(all[n].ms > 1e-9 * ms || all[n].beside > 0)) continue;
    all[n].name = n < first ? std::string(detail::term_names[n]) : std::string(collective_names[n - first]);
    out.push_back(std::move(all[n]));
  }
  return out;
}

}  // namespace cfp
