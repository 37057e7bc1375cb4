// The data of a pass, handed to all ranks of a process: asked for once, and checked.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/model/batch.hpp>

#include <algorithm>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

// Letters to add, take away or change until one name is the other (Levenshtein's distance).
inline std::size_t letters_apart(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = corner + (a[i] != b[j]);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, corner + 1});
    }
  }
  return row[b.size()];
}

}  // namespace detail

/// Hands a source's data to all ranks of this process: asked for once, by one rank at a time, and checked.
class shared_batches {
 public:
  /// Thrown by `feed` on every rank that comes to data that do not fit: no rank has failed, a job then ends. What was
  /// wrong is told by `rethrow`.
  struct ended {};

  /// The graph must outlive this.
  shared_batches(const graph& g, batch_source source) : graph_(g), source_(std::move(source)) {
    for (int v = 0; v < g.value_count(); ++v)
      if (g[v].role == value_role::input && g[v].producer < 0) (g[v].of < 0 ? inputs_ : slices_).push_back(v);
  }

  /// Gives a pass its inputs.
  void feed(loaded_program& to, long number) {
    const std::shared_ptr<const batch> data = at(number);
    for (const std::vector<int>* some : {&inputs_, &slices_})
      for (const int v : *some)
        std::visit([&](const auto& x) { to.give(v, std::span(x)); }, data->at(std::string(graph_[v].label.view())));
  }

  /// Throws bad_input if data did not fit the model, or what the source threw; after the job.
  void rethrow() const {
    if (mistake_) std::rethrow_exception(mistake_);
  }

 private:
  std::shared_ptr<const batch> at(long number) {
    const std::lock_guard lock(mutex_);
    if (mistake_ && number >= last_) throw ended();
    for (const auto& [n, data] : kept_)
      if (n == number) return data;
    try {
      auto data = std::make_shared<batch>(source_(number));
      check_names(*data, number);
      for (const int v : inputs_) check(*data, graph_[v], number);
      for (const int v : slices_) data->emplace(graph_[v].label.view(), slice(*data, graph_[v]));
      if (kept_.size() >= 4) kept_.erase(kept_.begin());
      kept_.emplace_back(number, data);
      return data;
    } catch (...) {
      mistake_ = std::current_exception();
      last_ = number;
      throw ended();
    }
  }

  // An array that no input takes is a name misspelt, or of another model.
  void check_names(const batch& data, long number) const {
    for (const auto& [label, unused] : data) {
      std::string nearest;
      std::size_t least = std::string::npos;
      bool known = false;
      for (const int v : inputs_) {
        const std::string_view input = graph_[v].label.view();
        known = known || input == label;
        const std::size_t apart = detail::letters_apart(label, input);
        if (apart < least) least = apart, nearest = input;
      }
      if (!known)
        throw bad_input("batch " + std::to_string(number) + ": the model has no input '" + label + "'" +
                        (nearest.empty() ? "" : "; the nearest one is '" + nearest + "'"));
    }
  }

  // Of an input: rows of it, where the dimension that it is cut along is the outermost of each.
  array slice(const batch& data, const value& v) const {
    const value& whole = graph_[v.of];
    int d = 0;
    while (d + 1 < v.rank() && v.shape[d] == whole.shape[d]) ++d;
    std::size_t inner = 1, outer = 1;
    for (int k = 0; k < v.rank(); ++k) (k < d ? outer : inner) *= static_cast<std::size_t>(k == d ? 1 : v.shape[k]);
    const auto take = [&](const auto& all) -> array {
      std::remove_cvref_t<decltype(all)> out;
      const auto of = [&](long positions) { return static_cast<std::size_t>(positions) * inner; };
      out.reserve(outer * of(v.shape[d]));
      for (std::size_t row = 0; row < outer; ++row) {
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(row * of(whole.shape[d]) + of(v.first));
        out.insert(out.end(), from, from + static_cast<std::ptrdiff_t>(of(v.shape[d])));
      }
      return out;
    };
    return std::visit(take, data.at(std::string(whole.label.view())));
  }

  static void check(const batch& data, const value& v, long number) {
    const std::string label(v.label.view());
    const auto fail = [&](const std::string& why) {
      return bad_input("batch " + std::to_string(number) + ": input '" + label + "' " + why);
    };
    const auto at = data.find(label);
    if (at == data.end()) throw fail("is missing");
    const std::size_t wanted = static_cast<std::size_t>(elements(v.shape));
    const std::size_t given = std::visit([](const auto& x) { return x.size(); }, at->second);
    if (given != wanted)
      throw fail("has " + std::to_string(given) + " elements, the model takes " + std::to_string(wanted));
    const auto* const indices = std::get_if<std::vector<std::int32_t>>(&at->second);
    if ((v.type == element::index) != (indices != nullptr))
      throw fail(v.type == element::index ? "holds numbers, the model takes indices (std::int32_t)"
                                          : "holds indices, the model takes numbers (float)");
    if (const auto* const numbers = std::get_if<std::vector<float>>(&at->second)) {
      const auto none = std::find_if(numbers->begin(), numbers->end(), [](float x) { return std::isnan(x); });
      if (none != numbers->end()) throw fail("holds nan at place " + std::to_string(none - numbers->begin()));
    }
    if (indices == nullptr || v.fill.bound <= 0) return;
    for (std::size_t i = 0; i < indices->size(); ++i) {
      const long index = (*indices)[i];
      if ((index >= 0 && index < v.fill.bound) || (v.fill.may_be_ignored && index == ignored_target)) continue;
      throw fail("has index " + std::to_string(index) + " at place " + std::to_string(i) +
                 ", the model takes those from 0 to " + std::to_string(v.fill.bound - 1) +
                 (v.fill.may_be_ignored ? " and " + std::to_string(ignored_target) + ", which is ignored" : ""));
    }
  }

  const graph& graph_;
  const batch_source source_;
  std::vector<int> inputs_, slices_;
  std::mutex mutex_;
  std::vector<std::pair<long, std::shared_ptr<const batch>>> kept_;
  std::exception_ptr mistake_;
  long last_ = 0;  // the batch it was in
};

}  // namespace cfp
