// What single instructions take on a kind of device: from a table, and where that has none, from a device of that kind
// that runs them.
#pragma once

#include <cfp/profile/instruction_kind.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/profile/work.hpp>

#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace cfp::inline v0_1 {

class known_instructions {
 public:
  /// Milliseconds of an instruction that does not communicate; nothing if it cannot run there.
  using device = std::function<std::optional<double>(const instruction&, const program&, const graph&)>;

  /// The table must outlive this; what the device is asked goes into it.
  explicit known_instructions(std::map<std::string, instruction_time>& table, device ask = {})
      : table_(table), ask_(std::move(ask)) {}

  int asked = 0;                                        ///< kinds the device ran
  std::set<std::string> unknown;                        ///< kinds of operators nothing was known of
  std::function<void(const std::string& what)> tell{};  ///< called before it does

  /// Milliseconds, or nothing. Collectives are known only if the table has them, which holds on the mesh they were
  /// measured on.
  std::optional<double> operator()(const instruction& i, const program& p, const graph& g) {
    const instruction_kind what = kind_of(i, p, g);
    const std::string label = what.label();
    if (const auto at = table_.find(label); at != table_.end()) return at->second.ms;
    if (i.may_run_beside()) return std::nullopt;
    if (ask_ && unknown.count(label) == 0) {
      if (tell) tell(label);
      if (const std::optional<double> ms = ask_(i, p, g)) {
        const work_done work = work_of(i, p, g);
        table_[label] = {*ms, work.flops, work.traffic};
        ++asked;
        return ms;
      }
    }
    unknown.insert(label);
    return std::nullopt;
  }

 private:
  std::map<std::string, instruction_time>& table_;
  device ask_;
};

}  // namespace cfp
