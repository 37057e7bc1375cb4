// Rotary positions, and how their frequencies are slowed for sequences longer than those a model was trained on.
#pragma once

#include <cfp/families/transformer.hpp>
#include <cfp/model/trace.hpp>
#include <cfp/op/attention.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace cfp::inline v0_1::families {

/// What `slowed_rotary` is told of slowed frequencies: see op/attention.hpp.
struct slowed_turns {
  double slow = 1, kept = 0, by_pair = 0, by_frequency = 0;
};

/// Of vectors of which `turned` numbers turn.
inline slowed_turns slowed(const turn_scaling& s, double base, double turned) {
  if (s.kind == turn_scaling_kind::none) return {};
  slowed_turns out{1 / s.factor};
  if (s.kind == turn_scaling_kind::wavelength) {  // what turns less than `slow` times in all of `original` is slowed
    out.kept = -s.slow / (s.fast - s.slow);
    out.by_frequency = s.original / (2 * std::numbers::pi * (s.fast - s.slow));
  } else if (s.kind == turn_scaling_kind::ramp) {  // the same by numbers of pairs, whole ones
    const auto pair_that_turns = [&](double times) {
      return turned * std::log(s.original / (times * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    const double first = std::max(std::floor(pair_that_turns(s.fast)), 0.0),
                 last = std::min(std::ceil(pair_that_turns(s.slow)), turned - 1),
                 pairs = last == first ? 0.001 : last - first;
    out.kept = 1 + first / pairs;
    out.by_pair = -1 / pairs;
  }
  return out;
}

namespace decoder_detail {

/// The first numbers of each vector of `depth`, turned by where it stands in the sequence.
inline tensor turned(tensor x, const transformer& t, long depth) {
  const long turns = t.turned > 0 ? t.turned : depth;
  const double base = std::log(t.rope), per_pair = 2.0 / static_cast<double>(turns);
  const slowed_turns s = slowed(t.turns, t.rope, static_cast<double>(turns));
  if (t.position == position_kind::rotary_pairs)
    return rotary_pairs(x, base, per_pair, s.slow, s.kept, s.by_pair, s.by_frequency, static_cast<double>(turns / 2),
                        size_of{"half", 2}, size_of{"out", 2});
  const long parts = depth / (turns / 2);
  const size_of half{"half", parts}, out{"out", parts};
  return t.turns.kind == turn_scaling_kind::none
             ? rotary(x, base, per_pair, half, out)
             : slowed_rotary(x, base, per_pair, s.slow, s.kept, s.by_pair, s.by_frequency, half, out);
}

}  // namespace decoder_detail

}  // namespace cfp::families
