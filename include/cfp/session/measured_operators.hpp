// What operators take on a described machine's devices, where that is measured.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/profile/known_instructions.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/session/plan_for.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace cfp::inline v0_1::detail {

/// What operators take on a machine's devices: as it is described, as a device runs them, or from a table made so.
class measured_operators {
 public:
  explicit measured_operators(const machine_plan_options& o) : o_(o) {
    if (!given()) return;
    const bool measures = static_cast<bool>(o.measure_on.ms);
    table_.origin = {measures ? o.measure_on.name : "", "operators", "any"};
    if (!o.table.empty() && (!measures || std::filesystem::exists(o.table)))
      if (const std::string why = table_.load(o.table); !why.empty())
        throw bad_input("table " + o.table + ": " + why +
                        (measures ? "; name another file" : "; cfp plan --backend cuda makes one, on a GPU"));
    known_.emplace(table_.instructions, o.measure_on.ms);
  }
  measured_operators(const measured_operators&) = delete;

  bool given() const { return static_cast<bool>(o_.measure_on.ms) || !o_.table.empty(); }
  known_instructions* known() { return known_ ? &*known_ : nullptr; }
  /// Writes the table if it grew.
  void keep() const {
    if (!o_.table.empty() && known_ && known_->asked > 0) table_.save(o_.table);
  }
  std::string words() const {
    if (!given()) return "all times are simulated";
    const std::string rest = known_->unknown.empty() ? ""
                                                     : ", and " + std::to_string(known_->unknown.size()) +
                                                           " kinds of operators that its table lacks";
    return "operators as measured on " + table_.origin.machine + "; as the machine is described: collectives" + rest;
  }

 private:
  const machine_plan_options& o_;
  profile_table table_;
  std::optional<known_instructions> known_;
};

}  // namespace cfp::detail
