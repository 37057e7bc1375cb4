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

inline constexpr lit piece_scan = "... pieces s d -> ... pieces s d; scan pieces";
inline constexpr lit column_scan = "... columns d -> ... columns d; scan columns";
inline constexpr lit state_scan = "... pieces s d, ... pieces s -> ... pieces s d; scan pieces";

// Gradients, the same the other way. They have none themselves: an operator that is its gradient's gradient is one that
// nvcc finds no end of.
template <lit Rule, int Step, bool Around, bool Sums>
struct scanned_back_t : scan_op<Rule, scanned_back_t<Rule, Step, Around, Sums>, Step, Around, Sums> {
  static constexpr linearity linear = linearity::all;
  static constexpr bool derived = true;
};
template <class Back>
inline constexpr std::array<gradient_step, 1> is_back = {
    {{&info<Back>, Back::rule_source, {{{gradient_source::gradient, 0}}, 1}, {{0}, 1}}}};
template <int Step>
struct state_back_t : scan_op<state_scan, state_back_t<Step>, Step, false, true> {
  static constexpr bool derived = true;
};
struct kept_gradient_t : contraction<"... pieces s d, ... pieces s d -> ... pieces s", kept_gradient_t> {
  static constexpr bool derived = true;
};

}  // namespace detail

/// y[p] = x[p - Step]: the piece of a neighbour; at the end zero, or (`Around`) that at the other end. Pieces are rows
/// of `s`, or columns: the last dimension but one.
template <lit Rule, int Step, bool Around>
struct neighbour_t : scan_op<Rule, neighbour_t<Rule, Step, Around>, Step, Around, false> {
  static constexpr linearity linear = linearity::all;
  static constexpr std::array<gradient_step, 1> gradient =
      detail::is_back<detail::scanned_back_t<Rule, -Step, Around, false>>;
};
inline constexpr neighbour_t<detail::piece_scan, 1, false> from_before;
inline constexpr neighbour_t<detail::piece_scan, -1, false> from_behind;
inline constexpr neighbour_t<detail::piece_scan, 1, true> from_before_around;
inline constexpr neighbour_t<detail::piece_scan, -1, true> from_behind_around;
inline constexpr neighbour_t<detail::column_scan, 1, false> left_of;
inline constexpr neighbour_t<detail::column_scan, -1, false> right_of;

/// y[p] = the sum of all x before p (behind, for -1).
template <int Step>
struct sum_of_others_t : scan_op<detail::piece_scan, sum_of_others_t<Step>, Step, false, true> {
  static constexpr linearity linear = linearity::all;
  static constexpr std::array<gradient_step, 1> gradient =
      detail::is_back<detail::scanned_back_t<detail::piece_scan, -Step, false, true>>;
};
inline constexpr sum_of_others_t<1> summed_before;
inline constexpr sum_of_others_t<-1> summed_behind;

/// The state before (behind, for -1) a piece, where each makes kept[p] state + x[p] of it: y[p + Step] = kept[p] y[p] +
/// x[p].
template <int Step>
struct state_t : scan_op<detail::state_scan, state_t<Step>, Step, false, true> {
  static constexpr std::array<gradient_step, 2> gradient = {{
      {&info<detail::state_back_t<-Step>>,
       detail::state_scan.view(),
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
