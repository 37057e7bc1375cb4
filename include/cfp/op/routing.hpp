// Mixture of experts: every token chooses a few experts, and experts take tokens in order of arrival up to a capacity;
// the dispatch and the way back are einsums (GShard, arXiv 2006.16668). Tokens are routed within groups.
#pragma once

#include <cfp/op/catalogue.hpp>

namespace cfp::inline v0_1 {

/// Places in the experts' queues. place[g, s, e] = +p where e is the first choice of token s and the token is the p-th
/// (from 1) to arrive at e; -p where e is a later choice; 0 where it is none. All first choices arrive before all
/// second ones, in order of the sequence. Scalar: choices per token. The choice has no gradient; the gates' weights do.
inline constexpr struct queue_places_t : op<"groups s experts -> groups s experts; whole s experts", queue_places_t> {
  static constexpr op_body body = op_body::routine;
  static constexpr bool statistic = true;
  static constexpr int scalars = 1;
} queue_places;

/// Sum of a token's gates over the experts it chose.
inline constexpr struct chosen_sum_t : op<"... experts, ... experts -> ...", chosen_sum_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T place) {
    return place > T(0) || place < T(0) ? gate : T(0);
  }
} chosen_sum;

/// dispatch[g, s, e, c] = 1 where token s holds place c of expert e.
inline constexpr struct dispatch_t
    : op<"groups s experts -> groups s experts capacity; whole capacity; index capacity", dispatch_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T place, long c) {
    const T one_based = static_cast<T>(c + 1);
    return place > one_based || place < -one_based ? T(0) : place < one_based && place > -one_based ? T(0) : T(1);
  }
} dispatch;

/// combine[g, s, e, c] = dispatch[g, s, e, c] * gate[g, s, e] / chosen_sum[g, s].
inline constexpr struct combine_t
    : op<"groups s experts, groups s experts, groups s -> groups s experts capacity; whole capacity; index capacity",
         combine_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T place, T sum, long c) {
    const T one_based = T(static_cast<double>(c + 1));
    return place > one_based || place < -one_based || (place < one_based && place > -one_based) ? T(0) : gate / sum;
  }
} combine;

/// The same with gates as they are: combine[g, s, e, c] = dispatch[g, s, e, c] * gate[g, s, e].
inline constexpr struct combine_gates_t
    : op<"groups s experts, groups s experts -> groups s experts capacity; whole capacity; index capacity",
         combine_gates_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T place, long c) {
    const T one_based = T(static_cast<double>(c + 1));
    return place > one_based || place < -one_based || (place < one_based && place > -one_based) ? T(0) : gate;
  }
} combine_gates;

/// Where experts stand in sets of which a token may choose some alone (DeepSeek-V2, arXiv 2405.04434): the largest gate
/// of each set, ...
inline constexpr struct set_max_t : op<"groups s (sets experts) -> groups s sets; max experts", set_max_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate) {
    return gate;
  }
} set_max;

/// ... the largest below that, ...
inline constexpr struct set_second_t
    : op<"groups s (sets experts), groups s sets -> groups s sets; max experts", set_second_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T max) {
    return gate < max ? gate : -infinity<T>;
  }
} set_second;

/// ... and the gates of sets that were chosen (`queue_places` of sets); others are as if they were not there.
inline constexpr struct of_chosen_sets_t
    : op<"groups s (sets experts), groups s sets -> groups s (sets experts)", of_chosen_sets_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T gate, T place) {
    return place > T(0) || place < T(0) ? gate : -infinity<T>;
  }
} of_chosen_sets;

/// Tokens to experts, and their answers back.
inline constexpr struct to_experts_t
    : contraction<"groups s experts capacity, groups s in -> experts groups capacity in", to_experts_t> {
} to_experts;
inline constexpr struct from_experts_t
    : contraction<"groups s experts capacity, experts groups capacity out -> groups s out", from_experts_t> {
} from_experts;

/// Tokens of a group whose first choice an expert is.
inline constexpr struct first_choices_t : op<"groups s experts -> groups experts", first_choices_t> {
  static constexpr bool statistic = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T place) {
    return place > T(0) ? T(1) : T(0);
  }
} first_choices;

/// The gates of a group summed over its tokens.
inline constexpr struct gate_mass_t : movement<"groups s experts -> groups experts", gate_mass_t> {
} gate_mass;

/// Sum over groups and experts of tokens that chose times gates: what the balancing loss scales.
inline constexpr struct imbalance_t : contraction<"groups experts, groups experts -> ", imbalance_t> {
} imbalance;

}  // namespace cfp
