// Choices of parts that keep less of forward.
#pragma once

#include <cfp/block/known_choices.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// What of equal parts is left out alike has an equal text.
inline std::string text_of_less(const graph& g, const part& p, const recomputed_parts& less) {
  std::string out =
      text_of_readers(g, p.operations, less.inputs) + ';' + text_of_readers(g, p.operations, less.borders) + ';';
  for (const recomputed_parts::level& l : less.levels) {
    out += std::to_string(l.inside);
    for (const std::vector<int>* some : {&l.operations, &l.on_host}) {
      for (const int o : *some) out.append(1, ' ').append(std::to_string(place_in(p.operations, o)));
      out += ';';
    }
  }
  return out;
}

/// Each strategy with each way to keep less; those that keep all come first, and of one way all in their order.
/// `furthest`: how far matrices may rest on the host; if at all, so may what is kept of forward.
inline choice_set with_less_kept(const graph& g, const part& p, choice_set whole, const recomputed_parts& less,
                                 keeping::resting_t furthest) {
  const bool may_host = furthest != keeping::on_device;
  std::vector<std::size_t> updates;
  for (std::size_t i = 0; may_host && i < p.operations.size(); ++i)
    if (const operation& o = g.at(p.operations[i]); o.op->body == op_body::update && g[o.hub].rank() > 1)
      updates.push_back(i);
  std::vector<recomputed_parts::level> levels(1);
  for (const recomputed_parts::level& l : less.levels)
    if (may_host || l.on_host.empty()) levels.push_back(l);
  const bool may_border = may_host && !less.borders.empty();
  if (levels.size() == 1 && less.inputs.empty() && updates.empty() && !may_border) return whole;
  choice_set out;
  out.dropped = whole.dropped;
  const auto add = [&](const recomputed_parts::level& l, const keeping& how) {
    for (std::size_t c = 0; c < whole.names.size(); ++c) {
      out.assigned.push_back(whole.assigned[c]);
      for (const int o : l.operations) out.assigned.back()[place_in(p.operations, o)].recompute = true;
      for (const int o : l.on_host) out.assigned.back()[place_in(p.operations, o)].on_host = true;
      for (const std::size_t i : updates) {
        out.assigned.back()[i].on_host = how.rests != keeping::on_device;
        out.assigned.back()[i].weight_on_host = how.rests == keeping::weights_on_host;
      }
      out.strategies.push_back(whole.strategies[c]);
      out.names.push_back(whole.names[c] + describe(how));
      out.kept.push_back(how);
    }
  };
  // On the host is what is left where little is kept otherwise.
  const bool least = less.inputs.empty();
  const auto last = std::find_if(levels.rbegin(), levels.rend(), [](const auto& l) { return l.on_host.empty(); });
  for (const keeping::resting_t rests : {keeping::on_device, keeping::state_on_host, keeping::weights_on_host}) {
    if (rests > furthest || (rests != keeping::on_device && updates.empty())) continue;
    for (const recomputed_parts::level& l : levels)
      for (const bool inputs : {true, false})
        if ((inputs || !least) && (l.on_host.empty() || inputs == least)) add(l, {l.inside, inputs, false, rests});
    for (const recomputed_parts::level& l : levels)
      if (may_border && (&l == &*last || !l.on_host.empty())) add(l, {l.inside, least, true, rests});
  }
  return out;
}

}  // namespace cfp::detail
