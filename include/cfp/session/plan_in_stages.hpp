// A plan in stages for a machine that is described, not here: nothing runs.
//
//   std::cout << *cfp::plan_in_stages(my_model, 128, cfp::load_machine("h100-8x8-400g.json"));
#pragma once

#include <cfp/session/plan_for.hpp>
#include <cfp/session/stages_plan.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// The fastest plan of so many rows a step in two stages or more; nothing if none fits, and then why in `why_none`, if
/// it is given. Of several pools all devices are taken, each stage in one pool, all stages on as many devices.
/// `places`: how many are tried along the stages; none: all that divide the devices. `o.micro_batches` of 0 or 1 are
/// all that divide the rows. Throws bad_input for options that do not fit the machine or the model, and for what stages
/// do not know of.
std::optional<stages_plan> plan_in_stages(const forward_of_rows& model, long rows, const machine_pools& m,
                                          const machine_plan_options& o = {}, const std::vector<int>& places = {},
                                          std::string* why_none = nullptr);

/// A plan in stages that was saved, priced there beside those people use in such stages; it may not fit. `rows`: of a
/// step; `o.name`: of the model of a micro-batch's rows. Throws bad_input where it is of another model, or a stage
/// begins inside of a segment.
stages_plan price_saved_stages(const forward_of_rows& model, long rows, const machine& m, const std::string& path,
                               const machine_plan_options& o = {});

}  // namespace cfp

#if !defined(CFP_COMPILED)
#include <cfp/session/plan_in_stages_implementation.hpp>
#include <cfp/session/price_saved_stages.hpp>
#include <cfp/session/stages_report.hpp>
#endif
