// What a question is asked of: an operator object and the types of its operands.
#pragma once

#include <cfp/core/infer.hpp>
#include <cfp/core/named.hpp>

namespace cfp::inline v0_1::detail {

template <class Op>
constexpr operator_view view_of() {
  return {Op::named ? Op::label() : std::string_view{}, Op::rule_source, Op::linear};
}

// The operands of a question. Lists are filled one by one: nvcc loses packs inside of nested braces.
struct asked_operands {
  list<operand_view, max_operands> views;
  list<const mesh_shape*, max_operands> meshes;

  constexpr list<int, max_operands> ranks() const {
    list<int, max_operands> out;
    for (const operand_view& v : views) out.push(v.shape->written());
    return out;
  }
  template <class T>
  constexpr void name(int at) {
    views[at].label = name_of<T>();
    views[at].element_bytes = element_bytes_of<T>();
  }
};
template <class... T>
constexpr asked_operands asked() {
  asked_operands out;
  ((out.views.push({&T::dims_type::value, &T::held}), out.meshes.push(&T::mesh_type::shape)), ...);
  return out;
}
// The same with what sentences say of them.
template <class... T>
constexpr asked_operands asked_by_name() {
  asked_operands out = asked<T...>();
  int at = 0;
  (out.template name<T>(at++), ...);
  return out;
}

template <class T>
concept partitioned_tensor = requires {
  typename T::dims_type;
  typename T::mesh_type;
};

// Read once per operator, and once per number of dimensions "..." stands for.
template <class Op>
inline constexpr rule_outline outline_of = outline(Op::rule_source);
template <class Op, int Dots>
inline constexpr rule rule_of = outline_of<Op>.problem ? rule{} : parse(Op::rule_source, Dots);

template <class Op, class... T>
constexpr inference inferred() {
  constexpr int dots = outline_of<Op>.ellipsis(asked<T...>().ranks());
  const asked_operands operands = asked<T...>();
  return infer(view_of<Op>(), outline_of<Op>, rule_of<Op, dots>, operands.views, operands.meshes);
}

}  // namespace cfp::detail
