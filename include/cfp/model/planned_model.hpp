// Whether a plan header still fits the model of the program that includes it: the compiler traces the model and looks
// for its weights and inputs in the plan.
#pragma once

#include <cfp/core/planned.hpp>
#include <cfp/model/refine.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// Sizes alone: a dimension may be called otherwise by now.
constexpr bool same_sizes(const value& v, std::string_view dims) {
  int at = 0;
  for (std::size_t from = 0; from < dims.size(); ++at) {
    const std::size_t equals = dims.find('=', from), end = dims.find(' ', from);
    long size = 0;
    for (std::size_t i = equals + 1; i < dims.size() && i < end && dims[i] != ')'; ++i)
      size = size * 10 + (dims[i] - '0');
    if (at >= v.rank() || v.shape[at] != size) return false;
    from = end == std::string_view::npos ? dims.size() : end + 1;
  }
  return at == v.rank();
}

template <class Plan, auto Model>
struct model_question {
  static constexpr sentence why = [] {
    model net;
    Model(net);
    const graph g = refine(net.recorded);
    sentence s;
    for (const value& v : g.values) {
      if (v.producer >= 0 || !s.empty()) continue;
      const planned_tensor* found = nullptr;
      for (const planned_tensor& t : Plan::tensors)
        if (v.label == t.name) found = &t;
      if (!found) {
        say(s, "the plan of ", Plan::model, " has no tensor '", v.label.view(), "'");
      } else if (!same_sizes(v, found->dims)) {
        say(s, "tensor ", v.label.view(), " has other dimensions in the plan: ", found->dims, "; in the model:");
        for (int i = 0; i < v.rank(); ++i) say(s, " ", v.dims[i].view(), "=", v.shape[i]);
      }
    }
    return s;
  }();
};

template <class Plan, auto Model>
consteval bool require_model() {
  using question = model_question<Plan, Model>;
  if constexpr (!question::why.empty()) return plan_fits_the_model<said<shorten<question::why.count>(question::why)>>();
  return true;
}

}  // namespace detail

/// Whether a plan was made for this model, a constexpr function `tensor(model&)`.
template <class Plan, auto Model>
inline constexpr bool planned_for_model = detail::require_model<Plan, Model>();

}  // namespace cfp
