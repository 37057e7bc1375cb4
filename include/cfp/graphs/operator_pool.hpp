// Operators that are made while a program runs, of graphs that come from files. Equal ones are one object, which lives
// as long as the program: repeats are found by their addresses.
#pragma once

#include <cfp/op/info.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// Of the whole program.
class operator_pool {
 public:
  /// The operator that `form` describes, with these steps as its gradient. What its texts are views of need not last.
  static const op_info& of(op_info form, std::vector<gradient_step> gradient = {}) {
    static operator_pool all;
    const std::lock_guard lock(all.mutex_);
    const std::string key = key_of(form, gradient);
    if (const auto at = all.known_.find(key); at != all.known_.end()) return *at->second;
    form.label = all.kept(form.label);
    form.type = all.kept(form.type);
    form.rule = all.kept(form.rule);
    for (gradient_step& step : gradient) step.rule = all.kept(step.rule);
    all.gradients_.push_back(std::move(gradient));
    form.gradient = all.gradients_.back().empty() ? nullptr : all.gradients_.back().data();
    form.gradient_steps = static_cast<int>(all.gradients_.back().size());
    all.operators_.push_back(form);
    all.known_.emplace(key, &all.operators_.back());
    return all.operators_.back();
  }

 private:
  static std::string key_of(const op_info& form, const std::vector<gradient_step>& gradient) {
    std::string key;
    const auto text = [&key](std::string_view part) { key.append(part).append(1, '\n'); };
    const auto number = [&key](std::intptr_t n) { key.append(std::to_string(n)).append(1, ' '); };
    text(form.label), text(form.type), text(form.rule);
    number(static_cast<int>(form.body)), number(static_cast<int>(form.linear)), number(form.scalars);
    number(form.index_operand), number(form.unit), number(form.statistic);
    for (const gradient_step& step : gradient) {
      text(step.rule);
      number(reinterpret_cast<std::intptr_t>(step.op));
      for (const gradient_source& s : step.operands) number(s.from), number(s.index);
      for (const signed char t : step.targets) number(t);
    }
    return key;
  }
  std::string_view kept(std::string_view text) {
    texts_.emplace_back(text);
    return texts_.back();
  }

  // Deques, for what stands in them stays where it is.
  std::mutex mutex_;
  std::deque<std::string> texts_;
  std::deque<std::vector<gradient_step>> gradients_;
  std::deque<op_info> operators_;
  std::map<std::string, const op_info*> known_;
};

}  // namespace cfp::graphs
