// Which mesh: all ways to arrange the devices of a machine along one, two or three axes.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/plan/exchanged.hpp>
#include <cfp/plan/three_axes.hpp>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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

/// Finds plans on meshes, of one to three axes, of a machine; the fastest mesh first. On one and two axes what is found
/// is compared with the plans people use and with Alpa's. `tell` hears of each mesh before it is searched, of one
/// at a time. When time is up, meshes but the first are left out. Throws bad_input for a mesh that does not fit on the
/// machine.
inline std::vector<mesh_plans> search_meshes(const graph& g, const machine& m, const machine_options& options,
                                             const std::vector<mesh_shape>& meshes,
                                             const std::function<void(const mesh_shape&)>& tell = {}) {
  const detail::planned_graph planned = [&] {
    const stage_timer finding(options.clock, stage::graph);
    return detail::planned_graph(g, options.lowered_for);
  }();
  std::vector<mesh_plans> out(meshes.size());
  std::mutex telling;
  const auto begins = [&](std::size_t i) {
    const mesh_shape& mesh = out[i].mesh = meshes[i];
    if (mesh.rank() > 3) throw bad_input("a mesh of " + std::to_string(mesh.rank()) + " axes: at most 3 are searched");
    described_times(m, mesh);
    out[i].searched = i == 0 || !options.over();
    if (out[i].searched && tell) {
      const std::lock_guard lock(telling);
      tell(mesh);
    }
    return out[i].searched;
  };
  std::vector<std::size_t> few, three;  // which begin with those
  for (std::size_t i = 0; i < meshes.size(); ++i) (meshes[i].rank() == 3 ? three : few).push_back(i);
  std::vector<std::unique_ptr<detail::one_mesh>> searches(meshes.size());
  detail::on_threads(options, few, [&](std::size_t i) {
    if (!begins(i)) return;
    searches[i] = std::make_unique<detail::one_mesh>(planned, m, out[i].mesh, options);
    searches[i]->keep_all();
  });
  double best = std::numeric_limits<double>::infinity();
  std::size_t promising = meshes.size();  // whose fastest plan is faster than the others'
  for (const std::size_t i : few) {
    if (!searches[i]) continue;
    best = std::min(best, searches[i]->plans().ms());
    if (promising == meshes.size() || searches[i]->free_ms() < searches[promising]->free_ms()) promising = i;
  }
  const auto keep_less = [&](std::size_t i) {
    if (!searches[i]) return;
    searches[i]->keep_less(best);
    out[i] = std::move(searches[i]->plans());
    searches[i].reset();
  };
  if (promising < meshes.size()) {
    keep_less(promising);
    best = std::min(best, out[promising].ms());
  }
  detail::on_threads(options, few, keep_less);
  std::vector<mesh_plans> known;
  for (const std::size_t i : three.empty() ? three : few) known.push_back(out[i]);
  detail::on_threads(options, three, [&](std::size_t i) {
    if (begins(i)) out[i] = detail::of_three_axes(planned, m, out[i].mesh, known, options);
  });
  const auto faster = [](const mesh_plans& a, const mesh_plans& b) { return a.ms() < b.ms(); };
  std::stable_sort(out.begin(), out.end(), faster);
  if (!out.empty()) detail::exchange_in(out.front(), planned, m, options);
  return out;
}

}  // namespace cfp
