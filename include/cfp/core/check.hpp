// The ways to be wrong. Each is a small named check that carries its rule; where the compiler can print it, the template
// argument (or, from C++26 on, the message itself) is the whole sentence with names and numbers.
#pragma once

#include <cfp/core/explain.hpp>

namespace cfp::inline v0_1 {

#if defined(__cpp_static_assert) && __cpp_static_assert >= 202306L
#define CFP_SAY(rule, sentence) sentence
#else
#define CFP_SAY(rule, sentence) rule
#endif

/// The text of a dimension, "batch", "batch=32" or "(three=3 heads=12 d=64)", cannot be read.
template <int Column, lit Sentence>
struct dimension_can_be_read {
  static consteval bool require() {
    static_assert(Column == 0, CFP_SAY("a dimension is written \"batch\", \"batch=32\" or \"(three=3 heads=12 d=64)\"; "
                                       "the column is where reading stopped", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct dimensions_have_different_names {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("two dimensions of a tensor have the same name", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct dimension_is_of_the_tensor {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a partition splits a dimension that the tensor does not have", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct axis_is_of_the_mesh {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a partition names an axis that the mesh does not have", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct axis_is_used_once {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a mesh axis is used twice; it splits one dimension, or holds parts of one sum", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct dimension_is_split_once {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a dimension is split twice; write one split with all its axes, the major one first", Sentence));
    return true;
  }
};

template <long Size, long Pieces, lit Sentence>
struct size_divides {
  static consteval bool require() {
    static_assert(Size % Pieces == 0, CFP_SAY("a dimension's size must be a multiple of the devices that split it", Sentence));
    return true;
  }
};

/// A rule cannot be read.
template <int Column, lit Sentence>
struct rule_can_be_read {
  static consteval bool require() {
    static_assert(Column == 0, CFP_SAY("a rule reads like \"batch in, in out -> batch out; whole out\"; the column is where "
                                       "reading stopped", Sentence));
    return true;
  }
};

template <int Given, int Wanted, lit Sentence>
struct operands_as_many_as_the_rule_has {
  static consteval bool require() {
    static_assert(Given == Wanted, CFP_SAY("an operator takes as many operands as its rule has", Sentence));
    return true;
  }
};

/// What an operator is asked about are types like `sharded<dims<...>, mesh, ...>`.
template <bool Holds>
struct operands_are_partitioned_tensors {
  static consteval bool require() {
    static_assert(Holds, "an operator is asked about types of partitioned tensors, cfp::sharded<cfp::dims<...>, mesh, ...>, one per operand");
    return true;
  }
};

template <bool Holds, lit Sentence>
struct operands_share_one_mesh {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("operands of one operator are partitioned over one mesh", Sentence));
    return true;
  }
};

template <int Operand, int Given, int Wanted, lit Sentence>
struct operand_has_the_dimensions_of_the_rule {
  static consteval bool require() {
    static_assert(Given == Wanted, CFP_SAY("an operand has as many dimensions as its rule says", Sentence));
    return true;
  }
};

template <int Operand, lit Sentence>
struct compound_dimension_fits_the_rule {
  static consteval bool require() {
    static_assert(Operand < 0, CFP_SAY("a compound dimension and its rule do not have the same parts", Sentence));
    return true;
  }
};

template <long One, long Other, lit Sentence>
struct sizes_agree {
  static consteval bool require() {
    static_assert(One == Other, CFP_SAY("one factor has two sizes", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct operands_hold_a_common_factor_alike {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("two operands hold a common factor differently along a mesh axis", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct whole_factor_is_not_split {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a factor that must stay whole is split", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct neighbours_owe_no_halo {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a split dimension is read across its borders: neighbours owe a halo", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct scanned_factor_is_not_split {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a split dimension is scanned: every device owes the next a carry", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct partial_sum_is_completed_first {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a partial sum reaches an operator that is not linear in it", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct axes_split_in_one_order {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("axes that split one dimension are written in the order of the mesh, or no operator knows them", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct partition_can_be_converted {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("two partitions of different tensors cannot be converted into one another", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct given_tensor_is_of_the_layer {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a partition is given for a tensor that the layer does not have", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct given_partition_fits_its_tensor {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a given partition does not fit its tensor", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct given_partitions_agree {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("two given partitions ask one operator to split two of its factors over one axis", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct factor_divides {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a factor's size must be a multiple of the devices that split it", Sentence));
    return true;
  }
};

/// The function of a model gives an operator shapes or operands that do not fit its rule.
template <bool Holds, lit Sentence>
struct model_can_be_traced {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a model gives an operator shapes or operands that do not fit its rule", Sentence));
    return true;
  }
};

/// Collectives of one pass are kept in a list of fixed length.
template <long Given, long Most>
struct layer_is_short_enough {
  static consteval bool require() {
    static_assert(Given <= Most, "a layer has too many collectives in one pass for one constant; check a shorter one");
    return true;
  }
};

template <bool Holds, lit Sentence>
struct planned_partition_is_what_the_operator_makes {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a planned partition is not what its operator makes or needs", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct planned_tensor_fits_the_rule {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a planned tensor does not have the dimensions of its operator's rule", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct planned_split_is_admissible {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("an operator of a plan is split as it cannot be", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct plan_fits_the_model {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a plan was made for another model", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct planned_step_leads_from_one_partition_to_the_other {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("a step of a plan does not lead from one partition to the other", Sentence));
    return true;
  }
};

template <bool Holds, lit Sentence>
struct communication_is_as_planned {
  static consteval bool require() {
    static_assert(Holds, CFP_SAY("planned partitions send something else than the plan says", Sentence));
    return true;
  }
};

template <bool Holds>
struct plan_is_made_for_this_mesh {
  static consteval bool require() {
    static_assert(Holds, "a plan was made for a mesh with other axes");
    return true;
  }
};

#undef CFP_SAY

}  // namespace cfp
