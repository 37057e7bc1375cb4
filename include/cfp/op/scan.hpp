// Scans: along a sequence of pieces (of a sequence, of an image's rows) each is given what the one before it left.
// Where an axis splits the pieces, neighbours hand on what lies at their border, once: as much however long the
// sequence is and however many devices there are. Halos of windows and convolutions are such a border, keys and values
// that go round make a ring of attention, and the states of linear attention an all-scan (ZeCO, arXiv 2507.01004).
#pragma once

#include <cfp/op/op.hpp>

namespace cfp::inline v0_1 {

template <lit Rule, class Op, int Step, bool Around, bool Sums>
struct scan_op : op<Rule, Op> {
  static constexpr op_body body = op_body::scan;
  static constexpr handing hands{Step, Around, Sums};
};

namespace detail {

/// The gradient of what is linear: the same the other way.
template <class Back>
inline constexpr std::array<gradient_step, 1> scanned_back = {
    {{&info<Back>, Back::rule_source, {{{gradient_source::gradient, 0}}, 1}, {{0}, 1}}}};

}  // namespace detail

/// y[p] = x[p - Step]: the piece of a neighbour. Beside the first there is zero, or the last. Pieces are rows of `s`,
/// or
/// (`left_of`, `right_of`) the last dimension but one.
template <lit Rule, int Step, bool Around>
struct neighbour_t : scan_op<Rule, neighbour_t<Rule, Step, Around>, Step, Around, false> {
  static constexpr linearity linear = linearity::all;
  static constexpr const std::array<gradient_step, 1>& gradient =
      detail::scanned_back<neighbour_t<Rule, -Step, Around>>;
};
template <int Step, bool Around>
using neighbour_piece_t = neighbour_t<"... pieces s d -> ... pieces s d; scan pieces", Step, Around>;
inline constexpr neighbour_piece_t<1, false> from_before;
inline constexpr neighbour_piece_t<-1, false> from_behind;
inline constexpr neighbour_piece_t<1, true> from_before_around;
inline constexpr neighbour_piece_t<-1, true> from_behind_around;
template <int Step>
using neighbour_column_t = neighbour_t<"... columns d -> ... columns d; scan columns", Step, false>;
inline constexpr neighbour_column_t<1> left_of;
inline constexpr neighbour_column_t<-1> right_of;

/// y[p] = the sum of all x before p (behind, for -1).
template <int Step>
struct sum_of_others_t
    : scan_op<"... pieces s d -> ... pieces s d; scan pieces", sum_of_others_t<Step>, Step, false, true> {
  static constexpr linearity linear = linearity::all;
  static constexpr const std::array<gradient_step, 1>& gradient = detail::scanned_back<sum_of_others_t<-Step>>;
};
inline constexpr sum_of_others_t<1> summed_before;
inline constexpr sum_of_others_t<-1> summed_behind;

namespace detail {
struct kept_gradient_t : contraction<"... pieces s d, ... pieces s d -> ... pieces s", kept_gradient_t> {
  static constexpr bool derived = true;
};
}  // namespace detail

/// The state before (behind, for -1) a piece, where piece p makes kept[p] state + x[p] of it: y[p + Step] = kept[p]
/// y[p]
/// + x[p].
template <int Step>
struct state_t
    : scan_op<"... pieces s d, ... pieces s -> ... pieces s d; scan pieces", state_t<Step>, Step, false, true> {
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<state_t<-Step>>,
       state_t<-Step>::rule_source,
       {{{gradient_source::gradient, 0}, {gradient_source::operand, 1}}, 2},
       {{0}, 1}},
      {&info<detail::kept_gradient_t>,
       detail::kept_gradient_t::rule_source,
       {{{gradient_source::step, 0}, {gradient_source::result, 0}}, 2},
       {{1}, 1}},
  }};
};
inline constexpr state_t<1> state_before;
inline constexpr state_t<-1> state_behind;

}  // namespace cfp
