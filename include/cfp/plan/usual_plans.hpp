// The plans people use today, by the names they have for them.
#pragma once

#include <cfp/plan/named.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

/// What an axis wishes to split, best first, for one kind of parallelism.
struct axis_role {
  const char* name;
  const char* wishes;
  bool late = false;      ///< gradients are reduced when all of them are there
  const char* rest = "";  ///< of what holds pieces of the batch: how weights rest along those of the sequence too
};

// The axes of a mesh that hold pieces of the batch. With zero1 state is split over pieces of the sequence too, as
// Megatron's distributed optimizer has it. Of what is reduced early along two slow axes few layers tell memory badly
// (6% of zero2's, `runtime.shortened`), so the others rest along the batch alone.
inline constexpr axis_role data_roles[] = {
    {"data_parallel", "batch groups"},
    {"zero1", "batch/scattered groups/scattered batch groups", true, "/scattered"},
    {"zero2", "batch/scattered groups/scattered batch groups"},
    {"zero3", "batch/regathered groups/regathered batch groups"},
};
// Columns of one matrix, rows of the next; with sequence parallelism what lies between holds pieces of the sequence.
inline constexpr axis_role tensor_roles[] = {
    {"tensor", "heads hidden kv_heads vocabulary"},
    {"tensor_sequence",
     "heads>sequence hidden>sequence vocabulary>sequence heads hidden kv_heads vocabulary sequence groups"},
};
// Pieces of the sequence: keys and values gathered, or heads split in their place for attention alone.
inline constexpr axis_role sequence_roles[] = {{"context", "sequence"}, {"ulysses", "sequence>heads sequence"}};
// Experts split, everything else holds pieces of the batch.
inline constexpr axis_role expert_roles[] = {{"expert", "experts batch groups"},
                                             {"expert_zero2", "experts batch/scattered groups/scattered batch groups"}};

// Weights rest along an axis of the sequence as along one of the batch.
inline std::string resting_along(std::string_view wishes, std::string_view rest) {
  std::string out;
  for (const bool rests : {true, false})
    for (std::size_t at = 0; at < wishes.size() && (!rests || !rest.empty());) {
      const std::size_t end = std::min(wishes.find(' ', at), wishes.size());
      const std::string_view one = wishes.substr(at, end - at);
      if (!rests || one.starts_with("sequence"))
        out.append(out.empty() ? "" : " ").append(one).append(rests ? rest : std::string_view());
      at = end + 1;
    }
  return out;
}

}  // namespace detail

/// Whether tokens of a model go to experts.
inline bool has_experts(const graph& g) {
  return std::any_of(g.values.begin(), g.values.end(), [](const value& v) { return v.dims.find("experts") >= 0; });
}

/// On one axis each kind alone; on several, a kind of data parallelism on all but the last, a kind of tensor, sequence
/// or expert parallelism there. All else (what shared tensors do) is solved.
inline std::vector<named_plan> usual_plans(const mesh_shape& mesh, bool experts) {
  std::vector<named_plan> out;
  const auto axes = static_cast<std::size_t>(mesh.rank());
  const auto put = [&](const detail::axis_role& outer, const detail::axis_role& last, const char* rest = "") {
    named_plan p;
    p.name = axes == 1 || outer.wishes == last.wishes ? last.name : std::string(outer.name) + "+" + last.name;
    p.wishes.assign(axes, outer.wishes);
    p.wishes.back() = detail::resting_along(last.wishes, rest);
    p.order.early = !(outer.late || last.late);
    out.push_back(p);
  };
  for (const auto& data : detail::data_roles) put(data, data);
  const auto add_inner = [&](const auto& roles, bool of_sequence = false) {
    for (const auto& role : roles) {
      put(role, role);
      if (axes > 1)
        for (const auto& data : detail::data_roles) put(data, role, of_sequence ? data.rest : "");
    }
  };
  add_inner(detail::tensor_roles);
  add_inner(detail::sequence_roles, true);
  if (experts) add_inner(detail::expert_roles);
  return out;
}

/// The kinds of parallelism of all axes but the last, and of the last; that is "" where one is of all.
inline std::pair<std::string, std::string> kinds_of(const named_plan& p) {
  const std::size_t plus = p.name.find('+');
  return {p.name.substr(0, plus), plus == std::string::npos ? "" : p.name.substr(plus + 1)};
}

/// Those to compare with: replicated, a kind of data parallelism everywhere, and with plain data parallelism outside
/// those that an axis is for: the sequence where it is named so, else tensors and experts. `regathers`: weights may be
/// gathered again for backward.
inline std::vector<named_plan> compared_plans(const mesh_shape& mesh, bool experts, bool regathers) {
  std::vector<named_plan> out{{"replicated", std::vector<std::string>(static_cast<std::size_t>(mesh.rank()), "")}};
  const bool of_sequence = mesh.axes[mesh.rank() - 1].label == "sequence";
  for (const named_plan& p : usual_plans(mesh, experts)) {
    const auto [outer, last] = kinds_of(p);
    const std::string inner = last.empty() ? outer : last;
    const bool data = inner == "data_parallel" || inner == "zero2" || (inner == "zero3" && regathers);
    const bool right = of_sequence ? inner == "context" || inner == "ulysses"
                                   : inner == "tensor" || inner == "tensor_sequence" || inner == "expert";
    if (last.empty() ? data || (right && mesh.rank() == 1) : outer == "data_parallel" && right) out.push_back(p);
  }
  return out;
}

}  // namespace cfp
