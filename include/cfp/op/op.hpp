// Operators. An operator is an object whose type is its rule; one name is checked by the compiler and called in a
// model:
//
//   inline constexpr cfp::op<"batch seq in, in out -> batch seq out"> linear;   // a contraction; of one operand: a
//   reshape
//
//   inline constexpr struct swiglu_t : cfp::op<"..., ... -> ...", swiglu_t> {   // any other: a rule and a functor
//     template <class T> CFP_HOST_DEVICE static T apply(T gate, T up) { return gate * cfp::sigmoid(gate) * up; }
//   } swiglu;
//
// Its gradient operators follow from the functor by dual numbers. Optional static members:
//   body, linear, unit, statistic, index_operand, scalars, reach_scalar (see op_info), gradient (an array of
//   gradient_step).
// The functor receives the operands, then the scalars, then the coordinates the rule marks with "index", as `long`.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/config.hpp>
#include <cfp/op/definition.hpp>
#include <cfp/op/type_text.hpp>

#include <utility>

namespace cfp::inline v0_1 {

template <class T>
struct dual;           // op/math.hpp, for those whose functors are differentiated
struct first_operand;  // model/tensor.hpp, for those that are called

namespace detail {

struct map_traits {
  static constexpr op_body body = op_body::map;
  static constexpr linearity linear = linearity::none;
  static constexpr bool unit = false, statistic = false, derived = false;
  static constexpr int index_operand = -1, scalars = 0, reach_scalar = -1;
  static constexpr std::array<gradient_step, 0> gradient{};
};

// What a rule alone means: the sum of products of two operands, or one operand's elements in another order.
struct contraction_traits : map_traits {
  static constexpr op_body body = op_body::product;
  static constexpr linearity linear = linearity::each;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x * y;
  }
};
struct movement_traits : map_traits {
  static constexpr linearity linear = linearity::all;
  static constexpr bool unit = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
};

// A rule that cannot be read says so once, where the operator is written.
template <lit Rule>
struct readable {
  static constexpr text_error problem = read_rule(Rule.view()).problem;
  static constexpr sentence why() {
    sentence s;
    say_error(s, problem, Rule.view());
    return s;
  }
};

// Factors whose mark says that more than a sum of products happens.
constexpr int marked(const rule& r) {
  int n = 0;
  for (const factor& f : r.factors) n += f.one_hot || f.scan;
  return n;
}

template <lit Rule, class Derived>
constexpr auto traits_of() {
  if constexpr (static_cast<bool>(readable<Rule>::problem)) {
    constexpr sentence why = readable<Rule>::why();
    static_assert(rule_can_be_read<said<shorten<why.count>(why)>>());
    return map_traits{};
  } else if constexpr (!std::is_void_v<Derived>) {
    return map_traits{};
  } else {
    constexpr rule bare = parse(Rule.view());
    constexpr int operands = bare.operands.size();
    static_assert(bare.combine == reduction::sum && marked(bare) == 0,
                  "a rule alone moves elements or sums products; one marked max, min, onehot or scan needs a functor");
    static_assert(operands == 1 || operands == 2,
                  "a rule alone is a contraction of two operands or a movement of one; give more a functor");
    if constexpr (operands == 2) return contraction_traits{};
    else return movement_traits{};
  }
}

}  // namespace detail

template <lit Rule, class Derived = void>
struct op : decltype(detail::traits_of<Rule, Derived>()) {
  using self = std::conditional_t<std::is_void_v<Derived>, op, Derived>;
  static constexpr std::string_view rule_source = Rule.view();
  static constexpr bool named = !std::is_void_v<Derived>;
  static constexpr std::string_view label() {
    if constexpr (!named) return parse(Rule.view()).operands.size() == 2 ? "einsum" : "rearrange";
    else return detail::label_of_type(detail::compiler_text<Derived>());
  }

  /// Applies the operator to tensors of a model (numbers among the arguments are its scalars).
  template <class... More>
  constexpr auto operator()(const first_operand& first, const More&... more) const;
};

/// A contraction with a name of its own.
template <lit Rule, class Op>
struct contraction : op<Rule, Op> {
  static constexpr op_body body = op_body::product;
  static constexpr linearity linear = linearity::each;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x * y;
  }
};

/// Reorders, reduces by sum or repeats elements; the rule says which.
template <lit Rule, class Op>
struct movement : op<Rule, Op> {
  static constexpr linearity linear = linearity::all;
  static constexpr bool unit = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
};

/// Adds two operands, dimension by dimension as the rule says.
template <lit Rule, class Op>
struct addition : op<Rule, Op> {
  static constexpr linearity linear = linearity::all;
  static constexpr bool unit = true;
  template <class T>
  CFP_HOST_DEVICE static T apply(T x, T y) {
    return x + y;
  }
};

/// The operator dz * d(Op)/d(operand Operand): operands are dz, then those of Op.
template <class Op, int Operand>
struct slope {
  static constexpr std::string_view rule_source{};
  static constexpr op_body body = op_body::map;
  static constexpr linearity linear = linearity::none;
  static constexpr bool unit = false, statistic = false, derived = true;
  static constexpr int index_operand = Op::index_operand < 0 ? -1 : Op::index_operand + 1;
  static constexpr int scalars = Op::scalars, reach_scalar = -1;
  static constexpr std::array<gradient_step, 0> gradient{};
  static constexpr std::string_view label() { return Op::label(); }

  template <class T, class... X>
  CFP_HOST_DEVICE static T apply(T dz, X... x) {
    return dz * derivative<T>(std::index_sequence_for<X...>{}, x...);
  }

 private:
  template <class T, std::size_t K, class X>
  CFP_HOST_DEVICE static auto lift(X x) {
    if constexpr (std::is_same_v<X, T>) return dual<T>{x, K == Operand ? T(1) : T(0)};
    else return x;  // indices and coordinates stay what they are
  }
  template <class T, std::size_t... K, class... X>
  CFP_HOST_DEVICE static T derivative(std::index_sequence<K...>, X... x) {
    return Op::apply(lift<T, K>(x)...).slope;
  }
};

/// Whether gradients of an operator are slopes of its functor.
template <class Op>
inline constexpr bool has_slopes = Op::body == op_body::map&& Op::gradient.size() == 0 && !Op::unit && !Op::statistic &&
                                   !Op::derived;

namespace detail {
template <class Op>
constexpr op_info make_info();
}  // namespace detail

/// The operator as a value; its address identifies the operator.
template <class Op>
inline constexpr op_info info = detail::make_info<Op>();

namespace detail {

/// How a user writes the type; nothing where the rule is all of it. That of a slope is its operator's.
template <class Op>
inline constexpr std::string_view written_type = without_namespaces(compiler_text<Op>());
template <lit Rule>
inline constexpr std::string_view written_type<op<Rule>> = std::string_view{};
template <class Op, int Operand>
inline constexpr std::string_view written_type<slope<Op, Operand>> = written_type<Op>;

template <class Op>
constexpr op_info make_info() {
  if constexpr (!Op::rule_source.empty()) static_assert(defined<Op>());  // slopes have none
  op_info out;
  out.label = Op::label();
  out.type = written_type<Op>;
  out.rule = Op::rule_source;
  out.body = Op::body;
  out.linear = Op::linear;
  out.scalars = Op::scalars;
  out.index_operand = Op::index_operand;
  out.reach_scalar = Op::reach_scalar;
  if constexpr (Op::body == op_body::scan) out.hands = Op::hands;
  out.unit = Op::unit;
  out.statistic = Op::statistic;
  if constexpr (Op::gradient.size() > 0) {
    out.gradient = Op::gradient.data();
    out.gradient_steps = static_cast<int>(Op::gradient.size());
  } else if constexpr (has_slopes<Op>) {
    constexpr int n = bare_rule<Op>.operands.size();
    [&]<std::size_t... Operand>(std::index_sequence<Operand...>) {
      ((out.slopes[Operand] =
            static_cast<int>(Operand) == Op::index_operand ? nullptr : &info<slope<Op, static_cast<int>(Operand)>>),
       ...);
    }
    (std::make_index_sequence<static_cast<std::size_t>(n)>{});
  }
  return out;
}

}  // namespace detail

}  // namespace cfp
