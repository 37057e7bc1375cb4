// Which of the plans people use a viewed plan is.
#pragma once

#include <cfp/export/plan_view.hpp>
#include <cfp/plan/nearest_usual.hpp>

#include <functional>

namespace cfp::inline v0_1 {

/// Or the nearest of those that `may` lets in. Plans in stages are not priced for that.
inline usual_view usual_of(const plan_view& view, const pricing& price,
                           const std::function<bool(const usual_view&)>& may) {
  const opened_plan& p = view.plan();
  return nearest_usual(p.g, p.mesh, p.decisions, p.choices, p.stages ? nullptr : &price, may);
}

}  // namespace cfp
