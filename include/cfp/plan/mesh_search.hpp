// Which mesh: all ways to arrange the devices of a machine along one, two or three axes.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/plan/exchanged.hpp>
#include <cfp/plan/three_axes.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

namespace cfp::inline v0_1 {

/// The meshes a machine allows: its devices along one axis, along two in every way, and (`axes`) along three. The last
/// axis lies innermost, so that the order of sizes says which axis is on which level. Sizes that straddle a level are
/// left out.
inline std::vector<mesh_shape> meshes_of(const machine& m, int axes = 2) {
  static constexpr const char* labels[] = {"x", "y", "z"};
  std::vector<mesh_shape> out, open(1);
  for (int n = 1; n <= std::min(axes, 3); ++n) {
    std::vector<mesh_shape> longer;
    for (const mesh_shape& mesh : open) {
      const int left = m.devices() / mesh.devices();
      mesh_shape whole = mesh;
      whole.axes.push({name(labels[n - 1]), left});
      try {
        for (int a = 0; a < n; ++a) group_of(m, whole, a);
        out.push_back(whole);
      } catch (const bad_input&) {}
      for (int size = 2; size * 2 <= left; ++size)
        if (left % size == 0) {
          longer.push_back(mesh);
          longer.back().axes.push({name(labels[n - 1]), size});
        }
    }
    open = std::move(longer);
  }
  return out;
}

namespace detail {

// Does something for each of some numbers, in order but several at a time. What the first of them throws is thrown. On
// one thread where a device measures.
inline void on_threads(const machine_options& options, const std::vector<std::size_t>& numbers,
                       const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> failed(numbers.size());
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = 0; (i = next++) < numbers.size();) {
      try {
        work(numbers[i]);
      } catch (...) {
        failed[i] = std::current_exception();
        next = numbers.size();
      }
    }
  };
  const unsigned here = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> others;
  if (options.known == nullptr)
    for (std::size_t n = 1; n < std::min<std::size_t>(here, numbers.size()); ++n) others.emplace_back(run);
  run();
  others.clear();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace detail

/// Plans on meshes, of one to three axes, of a machine. On one and two axes what is found is compared with the plans
/// people use and with Alpa's.
class mesh_search {
 public:
  /// Graph, machine and options must outlive this. `tell` hears of each mesh before it is searched, of one at a time.
  mesh_search(const graph& g, const machine& m, const machine_options& options, const std::vector<mesh_shape>& meshes,
              std::function<void(const mesh_shape&)> tell = {})
      : machine_(m), options_(options), tell_(std::move(tell)), planned_(planned(g)), found_(meshes.size()),
        searches_(meshes.size()) {
    for (std::size_t i = 0; i < meshes.size(); ++i) {
      found_[i].mesh = meshes[i];
      const auto other = std::find_if(few_.begin(), few_.end(), [&](std::size_t j) { return turned(j, meshes[i]); });
      if (other != few_.end()) turned_.emplace_back(i, *other);
      else (meshes[i].rank() == 3 ? three_ : few_).push_back(i);
    }
  }

  /// On one and two axes those that keep all. When time is up, meshes but the first are left out. Throws bad_input for
  /// a mesh that does not fit on the machine.
  void keep_all() {
    detail::on_threads(options_, few_, [&](std::size_t i) {
      if (!begins(i)) return;
      searches_[i] = std::make_unique<detail::one_mesh>(planned_, machine_, found_[i].mesh, options_);
      searches_[i]->keep_all();
    });
  }

  /// Then, where these do not fit or are slowed by what they must fit in, those that keep less. `within`: milliseconds
  /// beyond which nobody asks for a plan.
  void keep_less(double within = std::numeric_limits<double>::infinity()) {
    double best = std::min(ms(), within);
    const auto keep_less = [&](std::size_t i) {
      if (searches_[i]) searches_[i]->keep_less(best, within);
    };
    const std::size_t first = promising();
    if (first < found_.size()) {
      keep_less(first);
      best = std::min(best, searches_[first]->plans().ms());
    }
    std::vector<std::size_t> others;
    std::copy_if(few_.begin(), few_.end(), std::back_inserter(others), [&](std::size_t i) { return i != first; });
    detail::on_threads(options_, others, keep_less);
  }

  /// Milliseconds of the fastest plan so far.
  double ms() const {
    double out = std::numeric_limits<double>::infinity();
    for (const std::size_t i : few_)
      if (searches_[i]) out = std::min(out, searches_[i]->plans().ms());
    return out;
  }
  /// Whether no plan that keeps all is faster than the fastest of those that fit, or than `within`.
  bool settled(double within = std::numeric_limits<double>::infinity()) const {
    const double fits = std::min(ms(), within);
    return std::all_of(few_.begin(), few_.end(), [&](std::size_t i) {
      return !searches_[i] || fits <= searches_[i]->plans().plans.fastest_ms();
    });
  }

  /// The fastest mesh first. Meshes that differ from others in the order of axes alone, and those of three axes, are
  /// looked at now.
  std::vector<mesh_plans> plans() {
    take_turned();
    std::vector<mesh_plans> known;
    if (!three_.empty())
      std::copy_if(found_.begin(), found_.end(), std::back_inserter(known),
                   [](const mesh_plans& on) { return on.mesh.rank() < 3; });
    detail::on_threads(options_, three_, [&](std::size_t i) {
      if (begins(i)) found_[i] = detail::of_three_axes(planned_, machine_, found_[i].mesh, known, options_);
    });
    std::stable_sort(found_.begin(), found_.end(),
                     [](const mesh_plans& a, const mesh_plans& b) { return a.ms() < b.ms(); });
    if (!found_.empty()) detail::exchange_in(found_.front(), planned_, machine_, options_);
    return std::move(found_);
  }

 private:
  detail::planned_graph planned(const graph& g) const {
    const stage_timer finding(options_.clock, stage::graph);
    return detail::planned_graph(g, options_.lowered_for);
  }
  bool begins(std::size_t i) {
    const mesh_shape& mesh = found_[i].mesh;
    if (mesh.rank() > 3) throw bad_input("a mesh of " + std::to_string(mesh.rank()) + " axes: at most 3 are searched");
    described_times(machine_, mesh);
    found_[i].searched = i == 0 || !options_.over();
    if (found_[i].searched && tell_) {
      const std::lock_guard lock(telling_);
      tell_(mesh);
    }
    return found_[i].searched;
  }
  bool turned(std::size_t other, const mesh_shape& mesh) const {
    return detail::are_turned(machine_, found_[other].mesh, mesh);
  }
  void take_turned() {
    std::vector<std::size_t> numbers(turned_.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    detail::on_threads(options_, numbers, [&](std::size_t n) {
      const auto [i, other] = turned_[n];
      if (!begins(i)) return;
      searches_[i] = std::make_unique<detail::one_mesh>(planned_, machine_, found_[i].mesh, options_);
      searches_[i]->take_turned(*searches_[other]);
    });
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (searches_[i]) found_[i] = std::move(searches_[i]->plans()), searches_[i].reset();
  }
  // Whose fastest plan is faster than the others'.
  std::size_t promising() const {
    std::size_t out = found_.size();
    for (const std::size_t i : few_)
      if (searches_[i] && (out == found_.size() || searches_[i]->free_ms() < searches_[out]->free_ms())) out = i;
    return out;
  }

  const machine& machine_;
  const machine_options& options_;
  const std::function<void(const mesh_shape&)> tell_;
  std::mutex telling_;
  const detail::planned_graph planned_;
  std::vector<mesh_plans> found_;
  std::vector<std::unique_ptr<detail::one_mesh>> searches_;
  std::vector<std::size_t> few_, three_;  // meshes of up to two axes, and of three, which begin with those
  std::vector<std::pair<std::size_t, std::size_t>> turned_;  // a mesh, and that of which it has the axes turned
};

/// Plans on all these meshes, the fastest first.
inline std::vector<mesh_plans> search_meshes(const graph& g, const machine& m, const machine_options& options,
                                             const std::vector<mesh_shape>& meshes,
                                             const std::function<void(const mesh_shape&)>& tell = {}) {
  mesh_search search(g, m, options, meshes, tell);
  search.keep_all();
  search.keep_less();
  return search.plans();
}

}  // namespace cfp
