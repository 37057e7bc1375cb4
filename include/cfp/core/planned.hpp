// A plan as types: what a planner writes into a header, and the compiler derives again. See plan/header.hpp.
#pragma once

#include <cfp/core/ask.hpp>
#include <cfp/core/convert.hpp>
#include <cfp/core/named.hpp>

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

/// Tensors of a plan, in order.
template <class... Held>
struct tensors {
  template <class View, int Capacity>
  static constexpr list<View, Capacity> views() {
    static_assert(sizeof...(Held) <= Capacity, "an operator has at most eight operands and four results");
    return {{View{Held::name, &Held::type::mesh_type::shape, &Held::type::dims_type::value, &Held::type::held}...},
            sizeof...(Held)};
  }
};

/// A weight or an input of a plan: name, dimensions, partition.
struct planned_tensor {
  std::string_view name, dims, placement;
};

namespace detail {

struct planned_view {
  std::string_view name;
  const mesh_shape* mesh = nullptr;
  const dimensions* shape = nullptr;
  const partition* held = nullptr;
};

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

template <class Held>
constexpr planned_view planned_view_of() {
  return {Held::name, &Held::type::mesh_type::shape, &Held::type::dims_type::value, &Held::type::held};
}

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

struct step_answer {
  bool found = false;
  collective_count sent;
  sentence why;
};

// The step of this name along this axis that leads from one partition to the other.
constexpr step_answer find_step(const planned_view& from, const planned_view& to, std::string_view step,
                                std::string_view axis, const mesh_shape& mesh, long element_bytes) {
  step_answer out;
  if (from.name == to.name && *from.shape == *to.shape && *from.mesh == *to.mesh)
    each_step(*from.held, mesh, [&](const conversion_step& s) {
      if (out.found || step_names[s.kind] != step || mesh.axes[s.axis].label != axis ||
          !(after(*from.held, s) == *to.held))
        return;
      out.found = true;
      if (!s.communicates()) return;
      const auto k = static_cast<std::size_t>(s.collective());
      out.sent.calls[k] = 1;
      out.sent.bytes[k] = bytes_sent(s, *from.held, elements(from.shape->sizes) * element_bytes, mesh);
    });
  if (!out.found)
    say(out.why, step, " over '", axis, "': tensor ", from.name, " is planned as '",
        describe(*from.held, from.shape->parts, mesh).view(), "' before and ", to.name == from.name ? "" : to.name,
        to.name == from.name ? "" : " as ", "'", describe(*to.held, to.shape->parts, mesh).view(),
        "' after, which it does not make");
  return out;
}

template <class From, class To, lit Step, lit Axis>
struct resharding {
  static constexpr step_answer answer = find_step(planned_view_of<From>(), planned_view_of<To>(), Step.view(),
                                                  Axis.view(), From::type::mesh_type::shape, From::element_bytes);
};

template <class Question>
consteval bool require_step() {
  if constexpr (!Question::answer.found)
    return planned_step_leads_from_one_partition_to_the_other<
        said<shorten<Question::answer.why.count>(Question::answer.why)>>();
  return true;
}

}  // namespace detail

/// Whether an operator of a plan makes of its operands, by what it splits, the results the plan says. Does not compile
/// where it does not, and names the tensor, the operator and the axis.
template <lit Label, lit Rule, linearity Linear, class Assigned, class Operands, class Results>
inline constexpr bool planned =
    detail::require_planned<detail::planned_question<Label, Rule, Linear, Assigned, Operands, Results>>();

/// A tensor changes its partition by one step: a collective, or slice, mask, pad, which send nothing.
template <class From, class To, lit Step, lit Axis>
struct reshard {
  using question = detail::resharding<From, To, Step, Axis>;
  static_assert(detail::require_step<question>());
  static constexpr collective_count sent = question::answer.sent;
};

/// A list of them, and all their collectives.
template <class... Reshard>
struct reshards {
  static constexpr collective_count sent = [] {
    collective_count n;
    ((n += Reshard::sent), ...);
    return n;
  }();
};

namespace detail {

template <class Reshards, collective_count Planned>
struct sent_question {
  static constexpr sentence why = [] {
    sentence s;
    for (std::size_t k = 0; k < collective_names.size(); ++k)
      if (Reshards::sent.calls[k] != Planned.calls[k] || Reshards::sent.bytes[k] != Planned.bytes[k])
        say(s, s.empty() ? "" : "; ", collective_names[k], ": planned ", Planned.calls[k], " of ", Planned.bytes[k],
            " bytes, the partitions as written make ", Reshards::sent.calls[k], " of ", Reshards::sent.bytes[k]);
    return s;
  }();
};

template <class Reshards, collective_count Planned>
consteval bool require_sent() {
  if constexpr (!(Reshards::sent == Planned)) {
    using question = sent_question<Reshards, Planned>;
    return communication_is_as_planned<said<shorten<question::why.count>(question::why)>>();
  }
  return true;
}

}  // namespace detail

/// Whether these reshardings send what the plan says.
template <class Reshards, collective_count Planned>
inline constexpr bool sent_as_planned = detail::require_sent<Reshards, Planned>();

namespace detail {

template <class Plan, class Mesh>
inline constexpr sentence other_mesh = [] {
  sentence s;
  say(s, "the plan was made for the mesh (");
  say_axes(s, Plan::mesh::shape);
  say(s, "), not for (");
  say_axes(s, Mesh::shape);
  say(s, ")");
  return s;
}();

}  // namespace detail

/// Whether a plan was made for this mesh.
template <class Plan, class Mesh>
inline constexpr bool planned_for_mesh = [] {
  if constexpr (Plan::mesh::shape == Mesh::shape) return true;
  else
    return plan_is_made_for_this_mesh<
        said<shorten<detail::other_mesh<Plan, Mesh>.count>(detail::other_mesh<Plan, Mesh>)>>();
}();

}  // namespace cfp
