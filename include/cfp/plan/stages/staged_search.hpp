// The fastest plan of a model in stages on a described machine: where it is cut, the mesh and the sharding inside, what
// is kept, how many micro-batches and which schedule, in one search.
#pragma once

#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/stages/known_passes.hpp>
#include <cfp/plan/stages/one_layout.hpp>
#include <cfp/plan/stages/stage_places.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// All layouts by sums of parts, and the nearest of them by programs.
class staged_search {
 public:
  staged_search(const graph_of_rows& model, long rows, const machine_pools& m, const staged_options& options)
      : model_(model), rows_(rows), machine_(m), options_(options) {}

  std::optional<staged_plan> run() {
    const int most_micro_batches = std::max(options_.most_micro_batches, options_.micro_batches);
    for (int micro_batches = most_micro_batches; micro_batches >= 2; --micro_batches)
      if (rows_ % micro_batches == 0 && (options_.micro_batches == 0 || options_.micro_batches == micro_batches))
        look_at(micro_batches);
    by_programs("", 1, options_.machine.unsure, [](one_layout& l, double ms) { return l.by_programs(ms); });
    for (const int chunks : options_.chunks)
      if (chunks > 1)
        by_programs(", " + std::to_string(chunks) + " stages each", chunks, options_.machine.behind - 1,
                    [chunks](one_layout& l, double ms) { return l.interleaved_in(chunks, ms); });
    if (options_.split_backward)
      by_programs(", backward split", 1 << 20, options_.machine.behind - 1,
                  [](one_layout& l, double ms) { return l.split_backward(ms); });
    return fastest_that_holds();
  }

 private:
  using in_programs = std::function<std::optional<staged_plan>(one_layout&, double below)>;
  struct found_plan {
    one_layout* of = nullptr;
    in_programs how;
    staged_plan plan;

    double ms() const { return plan.price.ms; }
  };
  static constexpr double never = std::numeric_limits<double>::infinity();
  struct candidate {
    double sums_ms = never;
    stage_places on;
    std::string name;
    std::unique_ptr<one_layout> of;
  };
  static constexpr std::size_t most = 6;       // candidates
  static constexpr long most_operators = 1e5;  // which take some GiB of memory
  struct model_in {
    model_in(graph made, const target& on) : g(std::move(made)), planned(g, on) {}
    const graph g;
    const planned_graph planned;
  };

  // By programs of more micro-batches: of those that may be the fastest, as sure as they were priced, the one that is.
  std::optional<staged_plan> fastest_that_holds() {
    const auto faster = [](const auto& a, const auto& b) { return a.ms() < b.ms(); };
    std::stable_sort(found_.begin(), found_.end(), faster);
    for (auto first = found_.begin(), end = first; first != found_.end(); first = end) {
      while (end != found_.end() && end->ms() * (1 - roughly_off) <= first->ms() * (1 + roughly_off)) ++end;
      std::vector<std::size_t> numbers(static_cast<std::size_t>(end - first));
      std::iota(numbers.begin(), numbers.end(), std::size_t{0});
      std::vector<std::int64_t> lacks(numbers.size());
      on_threads(options_.machine, numbers, [&](std::size_t i) {
        found_plan& f = first[static_cast<std::ptrdiff_t>(i)];
        lacks[i] = f.of->lacks(f.plan);
      });
      const found_plan* best = nullptr;
      for (const bool again : {false, true})
        for (const std::size_t i : numbers) {
          found_plan& f = first[static_cast<std::ptrdiff_t>(i)];
          if ((lacks[i] > 0) != again || (best && !faster(f, *best))) continue;
          if (!again || holds_with_less(f, lacks[i])) best = best && !faster(f, *best) ? best : &f;
        }
      if (best) return best->plan;
    }
    return std::nullopt;
  }
  // One that lacks so many bytes, made of less memory by so much.
  bool holds_with_less(found_plan& f, std::int64_t bytes) {
    if (options_.machine.over()) return false;
    tell("less memory for " + std::to_string(f.plan.layout.places) + " places of " + sizes_text(f.plan.layout.inside));
    f.of->leave_free(bytes);
    std::optional<staged_plan> other = f.how(*f.of, never);
    if (other) f.plan = *std::move(other);
    return other && f.of->lacks(f.plan) == 0;
  }

  void tell(const std::string& what) {
    const std::lock_guard lock(telling_);
    if (options_.tell) options_.tell(what);
  }
  bool allows(int places) const {
    const std::vector<int>& asked = options_.places;
    return machine_.devices() % places == 0 &&
           (asked.empty() || std::find(asked.begin(), asked.end(), places) != asked.end());
  }

  // Candidates that are no further behind what is known, several at a time; of those priced in fewer stages of each
  // place such that so many may be faster.
  void by_programs(const std::string& how, int chunks, double behind, const in_programs& programs) {
    double ms = never;
    for (const found_plan& f : found_) ms = std::min(ms, f.ms());
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (candidates_[i].sums_ms < ms * (1 + behind) && candidates_[i].of->least_in(chunks) < ms) numbers.push_back(i);
    std::vector<std::optional<staged_plan>> found(candidates_.size());
    on_threads(options_.machine, numbers, [&](std::size_t i) {
      candidate& c = candidates_[i];
      tell("programs of " + c.name + how);
      found[i] = programs(*c.of, ms);
    });
    for (std::size_t i = 0; i < found.size(); ++i)
      if (found[i]) found_.push_back({candidates_[i].of.get(), programs, std::move(*found[i])});
  }

  // All layouts in so many micro-batches, several at a time: first equal stages of each, then what is faster.
  void look_at(int micro_batches) {
    const long rows = rows_ / micro_batches;
    double below = worst();
    std::vector<candidate> all = layouts(micro_batches);
    if (!options_.all_choices)
      std::erase_if(
          all, [&](const candidate& c) { return passes_.estimated(c.on.text(), c.on.count, micro_batches) > below; });
    std::vector<std::size_t> numbers(all.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    if (all.empty()) return;
    models_.push_back(std::make_unique<model_in>(made(rows, micro_batches), options_.machine.lowered_for));
    on_threads(options_.machine, numbers, [&](std::size_t i) {
      candidate& c = all[i];
      if (options_.machine.over()) return;
      tell(c.name);
      c.of =
          std::make_unique<one_layout>(model_, rows, micro_batches, models_.back()->planned, machine_, c.on, options_);
      c.sums_ms = c.of->of_equal_stages(below);
    });
    for (const candidate& c : all)
      if (c.of && c.of->passes_ms() > 0) passes_.add(c.on.text(), micro_batches, c.of->passes_ms());
    std::vector<double> known;
    for (const candidate& c : candidates_) known.push_back(c.sums_ms);
    for (const candidate& c : all) known.push_back(c.sums_ms);
    std::sort(known.begin(), known.end());
    if (known.size() >= most) below = known[most - 1] * (1 + 1e-9);
    below = std::min(below, known[0] * options_.machine.behind);
    on_threads(options_.machine, numbers, [&](std::size_t i) {
      candidate& c = all[i];
      if (!c.of || options_.machine.over()) return;
      const bool is_near = options_.all_choices || c.sums_ms < below * (1 + options_.machine.unsure);
      c.sums_ms = is_near ? c.of->by_sums(below) : never;
    });
    for (candidate& c : all)
      if (c.sums_ms < never) keep(std::move(c));
  }
  // The model, as it was asked for.
  graph made(long rows, int micro_batches) const {
    graph out = model_(rows, micro_batches);
    const std::string asked = std::to_string(rows) + " rows in " + std::to_string(micro_batches) + " micro-batches";
    if (out.passes != micro_batches)
      throw bad_input("a model of " + asked + " was asked for, and the function made a graph of " +
                      std::to_string(out.passes) + " micro-batches: it must be the training graph of as many");
    if (out.size() > most_operators)
      throw bad_input("the training graph has " + std::to_string(out.size()) +
                      " operators, and stages are searched of " + std::to_string(most_operators) +
                      " at most: take fewer layers");
    const auto inputs = [](const graph& g) {
      long all = 0;
      for (const value& v : g.values)
        if (v.role == value_role::input && v.producer < 0) all += static_cast<long>(elements(v.shape));
      return all;
    };
    if (!models_.empty() && inputs(models_.back()->g) == inputs(out))
      throw bad_input("a model of " + asked + " was asked for, and its inputs are as large as those of " +
                      std::to_string(models_.back()->g.passes) + " micro-batches: it must be of as many rows as asked");
    return out;
  }
  std::vector<candidate> layouts(int micro_batches) const {
    std::vector<candidate> out;
    for (int places = 2; places <= std::min(machine_.devices(), micro_batches); ++places) {
      if (!allows(places)) continue;
      for (stage_places& on : places_in(machine_, machine_.devices() / places, options_.axes)) {
        const std::string name = on.text() + ", " + std::to_string(micro_batches) + " micro-batches";
        out.push_back({never, std::move(on), name, {}});
      }
    }
    return out;
  }
  // Layouts that are no faster are not looked at.
  double worst() const {
    if (candidates_.empty()) return never;
    const double near = candidates_.front().sums_ms * options_.machine.behind;
    return candidates_.size() < most ? near : std::min(near, candidates_.back().sums_ms);
  }
  void keep(candidate c) {
    const auto after = std::upper_bound(candidates_.begin(), candidates_.end(), c.sums_ms,
                                        [](double ms, const candidate& x) { return ms < x.sums_ms; });
    candidates_.insert(after, std::move(c));
    if (candidates_.size() > most) candidates_.pop_back();
  }

  const graph_of_rows& model_;
  const long rows_;
  const machine_pools& machine_;
  const staged_options& options_;
  std::vector<std::unique_ptr<model_in>> models_;
  std::mutex telling_;
  known_passes passes_;
  std::vector<candidate> candidates_;  // the fastest first
  std::vector<found_plan> found_;
};

}  // namespace detail

/// The fastest plan of so many rows a step in two stages or more; nothing if none fits. Throws bad_input for options
/// that no search can have, and a `model` that makes another than it is asked for.
inline std::optional<staged_plan> search_stages(const graph_of_rows& model, long rows, const machine_pools& m,
                                                const staged_options& options) {
  check(options, rows, m);
  if (!model) throw bad_input("there is no model: the function that makes it is empty");
  return detail::staged_search(model, rows, m, options).run();
}

}  // namespace cfp
