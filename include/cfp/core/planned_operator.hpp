// An operator of a plan: what it splits, and whether it makes of its operands the results that the plan says.
#pragma once

#include <cfp/core/check.hpp>
#include <cfp/core/parse.hpp>
#include <cfp/core/planned_view.hpp>
#include <cfp/core/propagate.hpp>

namespace cfp::inline v0_1 {

/// What an operator of a plan splits over a mesh axis.
template <lit Factor, lit Axis>
struct splits {
  static constexpr std::string_view factor = Factor.view(), axis = Axis.view();
};
/// The operator passes parts of a sum on.
template <lit Axis>
struct passes {
  static constexpr std::string_view factor{}, axis = Axis.view();
};
template <class... Split>
struct assigned {
  template <class Operator>
  static constexpr void tell(Operator& o) {
    (o.split(Split::factor, Split::axis), ...);
  }
};

namespace detail {

struct plan_problem {
  enum kind_t : std::uint8_t { nothing, placement, sizes, assignment } kind = nothing;
  sentence why;
};

struct planned_operator {
  std::string_view label, source;
  linearity linear;
  const mesh_shape& mesh;
  list<planned_view, max_operands> operands;
  list<planned_view, max_results> results;
  rule r{};
  assignment a{};
  factor_sizes sizes{};
  plan_problem out{};

  constexpr void split(std::string_view factor, std::string_view axis) {
    const int at = mesh.find(axis), f = factor.empty() ? assignment::partial : r.find(factor);
    if (at < 0 || f == -1) {
      out.kind = plan_problem::assignment;
      out.why = {};
      say(out.why, label, " is to split '", factor, "' over '", axis, "', which its rule or the mesh does not have");
      return;
    }
    if (a.factor[at] != assignment::none) {
      out.kind = plan_problem::assignment;
      out.why = {};
      say(out.why, label, " is to split two factors over '", axis, "'");
      return;
    }
    a.factor[at] = static_cast<signed char>(f);
  }

  constexpr void size_of(const planned_view& v, const pattern& p) {
    if (out.kind != plan_problem::nothing) return;
    for (int i = 0; i < p.factors.size(); ++i) {
      long& have = sizes[p.factors[i]];
      const long size = i < v.shape->rank() ? v.shape->sizes[i] : -1;
      if (size == -1 || v.shape->rank() != p.factors.size() || (have != 0 && have != size)) {
        out.kind = plan_problem::sizes;
        say(out.why, label, ": tensor ", v.name, " does not have the dimensions of \"", source, "\"");
        if (size > 0) say(out.why, ": '", v.shape->parts[i], "' is ", size, ", must be ", have);
        return;
      }
      have = size;
    }
  }

  constexpr void compare(const planned_view& v, const partition& want, bool result) {
    if (out.kind != plan_problem::nothing || *v.held == want) return;
    out.kind = plan_problem::placement;
    int axis = 0;
    while (axis < mesh.rank() && v.held->on(axis) == want.on(axis)) ++axis;
    say(out.why, label, ": tensor ", v.name, " is planned as '", describe(*v.held, v.shape->parts, mesh).view(),
        "', but the operator ");
    const auto split_of = [&](int at) {
      if (a.factor[at] >= 0) say(out.why, "splits '", r.factors[a.factor[at]].label.view(), "' over '");
      else
        say(out.why, a.factor[at] == assignment::partial ? "passes parts of a sum on over '" : "splits nothing over '");
      say(out.why, mesh.axes[at].label.view(), "'");
    };
    if (axis < mesh.rank()) split_of(axis);
    else say(out.why, "splits its axes in another order");
    say(out.why, result ? " and makes it '" : " and needs it as '", describe(want, v.shape->parts, mesh).view(), "'");
  }

  constexpr plan_problem check() {
    if (out.kind != plan_problem::nothing) return out;
    if (operands.size() != r.operands.size() || results.size() != r.results.size()) {
      out.kind = plan_problem::sizes;
      say(out.why, label, ": has ", static_cast<long>(operands.size()), " operands and ",
          static_cast<long>(results.size()), " results, its rule \"", source, "\" ",
          static_cast<long>(r.operands.size()), " and ", static_cast<long>(r.results.size()));
      return out;
    }
    const auto one_mesh = [&](const planned_view& v) {
      if (*v.mesh == mesh || out.kind != plan_problem::nothing) return;
      out.kind = plan_problem::assignment;
      say(out.why, label, ": tensor ", v.name, " is planned on another mesh");
    };
    for (const planned_view& v : operands) one_mesh(v);
    for (const planned_view& v : results) one_mesh(v);
    if (out.kind != plan_problem::nothing) return out;
    for (int i = 0; i < r.factors.size(); ++i) sizes.push(0);
    for (int i = 0; i < operands.size(); ++i) size_of(operands[i], r.operands[i]);
    for (int i = 0; i < results.size(); ++i) size_of(results[i], r.results[i]);
    if (out.kind == plan_problem::nothing && !admissible(r, linear, sizes, a, mesh)) {
      out.kind = plan_problem::assignment;
      say(out.why, label, ": what it is to split does not divide, must stay whole, or is a sum it is not linear in");
    }
    for (int i = 0; i < operands.size(); ++i) compare(operands[i], operand_partition(r, i, a), false);
    for (int i = 0; i < results.size(); ++i) compare(results[i], result_partition(r, i, a), true);
    return out;
  }
};

template <lit Label, lit Rule, linearity Linear, class Assigned, class Operands, class Results>
struct planned_question {
  static constexpr plan_problem ask() {
    const auto operands = Operands::template views<planned_view, max_operands>();
    const auto results = Results::template views<planned_view, max_results>();
    if (results.empty()) return {plan_problem::sizes, "an operator of a plan has a result"};
    planned_operator o{Label.view(), Rule.view(), Linear, *results[0].mesh, operands, results};
    const parsed_rule r = read_rule(Rule.view());
    if (r.problem) return {plan_problem::sizes, "the rule of an operator of the plan cannot be read"};
    o.r = r.value;
    Assigned::tell(o);
    return o.check();
  }
  static constexpr plan_problem problem = ask();
};

template <class Question>
consteval bool require_planned() {
  if constexpr (Question::problem.kind != plan_problem::nothing) {
    constexpr auto s = shorten<Question::problem.why.count>(Question::problem.why);
    if constexpr (Question::problem.kind == plan_problem::placement)
      return planned_partition_is_what_the_operator_makes<said<s>>();
    else if constexpr (Question::problem.kind == plan_problem::sizes) return planned_tensor_fits_the_rule<said<s>>();
    else return planned_split_is_admissible<said<s>>();
  }
  return true;
}

}  // namespace detail

/// Whether an operator of a plan makes of its operands, by what it splits, the results the plan says. Does not compile
/// where it does not, and names the tensor, the operator and the axis.
template <lit Label, lit Rule, linearity Linear, class Assigned, class Operands, class Results>
inline constexpr bool planned =
    detail::require_planned<detail::planned_question<Label, Rule, Linear, Assigned, Operands, Results>>();

}  // namespace cfp
