// The ways to be wrong. Each is a small named check with its rule; what it is asked about is a sentence (said.hpp) with
// names and numbers, which the compiler prints beside it, or as the message. (long: one check after another, each a few
// lines that are read alone)
#pragma once

#include <cfp/core/explain.hpp>
#include <cfp/core/said.hpp>

#if defined(CFP_SAYS_MESSAGES)
#define CFP_SAY(rule, sentence) sentence
#else
#define CFP_SAY(rule, sentence) rule
#endif

namespace cfp::inline v0_1 {

// Each holds where there is nothing to say.

/// The text of a dimension, "batch", "batch=32" or "(three=3 heads=12 d=64)", cannot be read.
template <class Said, bool Holds = Said::silent>
consteval bool dimension_can_be_read() {
  static_assert(Holds, CFP_SAY("a dimension is written \"batch\", \"batch=32\" or \"(three=3 heads=12 d=64)\"; the "
                               "column is where reading stopped",
                               Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool dimensions_have_different_names() {
  static_assert(Holds, CFP_SAY("two dimensions of a tensor have the same name", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool dimension_is_of_the_tensor() {
  static_assert(Holds, CFP_SAY("a partition splits a dimension that the tensor does not have", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool axis_is_of_the_mesh() {
  static_assert(Holds, CFP_SAY("a partition names an axis that the mesh does not have", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool axis_is_used_once() {
  static_assert(Holds,
                CFP_SAY("a mesh axis is used twice; it splits one dimension, or holds parts of one sum", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool dimension_is_split_once() {
  static_assert(Holds,
                CFP_SAY("a dimension is split twice; write one split with all its axes, the major one first", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool size_divides() {
  static_assert(Holds, CFP_SAY("a dimension's size must be a multiple of the devices that split it", Said{}));
  return true;
}

/// A rule cannot be read.
template <class Said, bool Holds = Said::silent>
consteval bool rule_can_be_read() {
  static_assert(
      Holds,
      CFP_SAY("a rule reads like \"batch in, in out -> batch out; whole out\"; the column is where reading stopped",
              Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool operands_as_many_as_the_rule_has() {
  static_assert(Holds, CFP_SAY("an operator takes as many operands as its rule has", Said{}));
  return true;
}

/// A rule scans, and what is handed on from position to position is not said; or the other way round.
template <class Said, bool Holds = Said::silent>
consteval bool scan_says_what_it_hands_on() {
  static_assert(Holds, CFP_SAY("an operator that scans says what one position leaves to the next", Said{}));
  return true;
}

/// A model calls an operator with something else than tensors, numbers and sizes.
template <class Said, bool Holds = Said::silent>
consteval bool call_has_tensors_numbers_and_sizes() {
  static_assert(Holds, CFP_SAY("an operator of a model is called with tensors, then numbers and cfp::size_of", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool numbers_as_many_as_the_functor_takes() {
  static_assert(Holds, CFP_SAY("an operator takes as many numbers behind its operands as its functor does", Said{}));
  return true;
}

/// A functor is not callable with the operands of its rule, its scalars and the positions that the rule marks "index".
template <class Said, bool Holds = Said::silent>
consteval bool functor_takes_what_it_is_given() {
  static_assert(Holds, CFP_SAY("a functor is called with what its rule and its `scalars` say", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool gradient_has_the_factors_of_the_rule() {
  static_assert(Holds, CFP_SAY("a gradient's steps have the factors of their operator's rule", Said{}));
  return true;
}

/// What an operator is asked about are types like `sharded<dims<...>, mesh, ...>`.
template <class Said, bool Holds = Said::silent>
consteval bool operands_are_partitioned_tensors() {
  static_assert(Holds, CFP_SAY("an operator is asked about types of partitioned tensors, cfp::sharded<cfp::dims<...>, "
                               "mesh, ...>, one per operand",
                               Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool operands_share_one_mesh() {
  static_assert(Holds, CFP_SAY("operands of one operator are partitioned over one mesh", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool operand_has_the_dimensions_of_the_rule() {
  static_assert(Holds, CFP_SAY("an operand has as many dimensions as its rule says", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool compound_dimension_fits_the_rule() {
  static_assert(Holds, CFP_SAY("a compound dimension and its rule do not have the same parts", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool compound_dimension_is_in_the_order_of_the_rule() {
  static_assert(Holds, CFP_SAY("a compound dimension has its parts in another order than the rule", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool operands_call_a_common_factor_alike() {
  static_assert(Holds, CFP_SAY("two operands call one factor by different names", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool sizes_agree() {
  static_assert(Holds, CFP_SAY("one factor has two sizes", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool operands_hold_a_common_factor_alike() {
  static_assert(Holds, CFP_SAY("two operands hold a common factor differently along a mesh axis", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool whole_factor_is_not_split() {
  static_assert(Holds, CFP_SAY("a factor that must stay whole is split", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool neighbours_owe_no_halo() {
  static_assert(Holds, CFP_SAY("a split dimension is read across its borders: neighbours owe a halo", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool scanned_factor_is_not_split() {
  static_assert(Holds, CFP_SAY("a split dimension is scanned: every device owes the next a carry", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool partial_sum_is_completed_first() {
  static_assert(Holds, CFP_SAY("a partial sum reaches an operator that is not linear in it", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool axes_split_in_one_order() {
  static_assert(
      Holds,
      CFP_SAY("axes that split one dimension are written in the order of the mesh, or no operator knows them", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool partition_can_be_converted() {
  static_assert(Holds, CFP_SAY("two partitions of different tensors cannot be converted into one another", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool steps_lead_from_one_partition_to_the_other() {
  static_assert(Holds, CFP_SAY("steps do not lead from one partition of a tensor to the other", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool tensors_fit_one_buffer() {
  static_assert(
      Holds,
      CFP_SAY(
          "tensors of one buffer are held whole along the axis that shares it, on one mesh, with elements of one size",
          Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool gradient_is_as_the_buffer_takes_it() {
  static_assert(
      Holds,
      CFP_SAY("a gradient is laid into a buffer as parts of a sum over the axis that shares it, else as its tensor",
              Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool given_tensor_is_of_the_layer() {
  static_assert(Holds, CFP_SAY("a partition is given for a tensor that the layer does not have", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool given_partition_fits_its_tensor() {
  static_assert(Holds, CFP_SAY("a given partition does not fit its tensor", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool given_partitions_agree() {
  static_assert(Holds,
                CFP_SAY("two given partitions ask one operator to split two of its factors over one axis", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool factor_divides() {
  static_assert(Holds, CFP_SAY("a factor's size must be a multiple of the devices that split it", Said{}));
  return true;
}

/// The function of a model gives an operator shapes or operands that do not fit its rule.
template <class Said, bool Holds = Said::silent>
consteval bool model_can_be_traced() {
  static_assert(Holds, CFP_SAY("a model gives an operator shapes or operands that do not fit its rule", Said{}));
  return true;
}

/// Collectives of one pass are kept in a list of fixed length.
template <class Said, bool Holds = Said::silent>
consteval bool layer_is_short_enough() {
  static_assert(Holds,
                CFP_SAY("a layer has too many collectives in one pass for one constant; check a shorter one", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool planned_partition_is_what_the_operator_makes() {
  static_assert(Holds, CFP_SAY("a planned partition is not what its operator makes or needs", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool planned_tensor_fits_the_rule() {
  static_assert(Holds, CFP_SAY("a planned tensor does not have the dimensions of its operator's rule", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool planned_split_is_admissible() {
  static_assert(Holds, CFP_SAY("an operator of a plan is split as it cannot be", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool plan_fits_the_model() {
  static_assert(Holds, CFP_SAY("a plan was made for another model", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool planned_step_leads_from_one_partition_to_the_other() {
  static_assert(Holds, CFP_SAY("a step of a plan does not lead from one partition to the other", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool planned_crossing_is_received_as_it_is_sent() {
  static_assert(Holds, CFP_SAY("what goes from one stage of a plan to another is not received as it is sent", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool communication_is_as_planned() {
  static_assert(Holds, CFP_SAY("planned partitions send something else than the plan says", Said{}));
  return true;
}

template <class Said, bool Holds = Said::silent>
consteval bool plan_is_made_for_this_mesh() {
  static_assert(Holds, CFP_SAY("a plan was made for a mesh with other axes", Said{}));
  return true;
}

#undef CFP_SAY

}  // namespace cfp
