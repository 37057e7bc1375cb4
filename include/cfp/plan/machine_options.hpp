// How plans for a described machine are searched for.
#pragma once

#include <cfp/plan/stage_clock.hpp>
#include <cfp/profile/known_instructions.hpp>
#include <cfp/program/target.hpp>
#include <cfp/solve/memory/budget.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace cfp::inline v0_1 {

/// What plans may compute again for backward in the place of keeping it.
enum class recomputing : std::uint8_t {
  none,
  where_needed,  ///< what the search chooses, where plans that keep all do not fit or are slowed by what they must fit
                 ///< in
  all,           ///< all that can be, as a plan to compare with
};

struct machine_options {
  long memory = 0;         ///< bytes of a device a plan may use; 0: what the machine's devices have
  target lowered_for = 2;  ///< numbers that are not wide take two bytes
  recomputing recompute = recomputing::where_needed;
  /// Where the machine says how fast it comes from there, optimizer state and what backward reads may rest on the host,
  /// as may be recomputed; weights, where nothing else fits.
  bool may_host = true;
  bool overlap = true;                  ///< collectives run beside operators
  known_instructions* known = nullptr;  ///< measured on such devices, in place of the description
  /// Most for one solution, of 1e9 additions each: by count, so that what else runs does not change what is found.
  double solve_seconds = 5;
  double limited_share = 1;  ///< of those, for one solution within a limit of memory
  double gap = 5e-3;         ///< how far a sum of parts may be above the least, relative to it, to be near enough
  /// Most strategies, of parts that differ, up to which three axes are solved together; with more they are in turn, and
  /// nothing is known of how near that is. A thousand take about two seconds.
  double together = 2000;
  /// Of a step's time: two of three axes that are solved again and bring less brought nothing; and a mesh so many times
  /// as slow as the best of others is not looked into: of three axes each is solved but once, and where a plan fits
  /// that keeps all, none is looked for that keeps less.
  double gain = 1e-3, behind = 1.25;
  /// How far sums of parts may be from what programs take, relative to that, as plans compare that keep less: one that
  /// is slower by more than that is not looked for.
  double unsure = 0.05;
  /// Plans that keep less are looked for among fewer choices too where those found among all are of these: that finds
  /// what is better by no more than `gap`.
  bool again = true;
  /// When no more is begun: the best known by then is the answer. Without it what is found depends on no clock.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
  /// Shares of what weights and their gradients communicate that candidates are found by: work beside it hides the
  /// rest.
  std::vector<double> counted = {1, 0.5, 0.2};
  std::optional<std::int64_t> known_limit{};  ///< bytes that sums of parts are held to where nothing else found a plan
  stage_clock* clock = nullptr;               ///< counts where the time goes
  /// That search meshes; 0: as many as run at a time here. What is found is the same, unless `until` ends it.
  unsigned threads = 0;

  bool over() const { return std::chrono::steady_clock::now() >= until; }
  /// On devices with so much memory, where no other limit was given, and for conversions at these prices.
  machine_options on(long bytes, const step_prices& prices) const {
    machine_options out = *this;
    out.lowered_for.prices = &prices;
    if (out.memory == 0) out.memory = bytes;
    return out;
  }
  solve_options of_solver(double share = 1) const {
    solve_options o;
    o.max_steps = 1e9 * solve_seconds * share;
    o.gap = gap;
    if (until != std::chrono::steady_clock::time_point::max())
      o.max_seconds = std::max(0.0, std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count());
    return o;
  }
};

}  // namespace cfp
