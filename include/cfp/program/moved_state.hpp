// What is sent where a training goes on under another plan, on the same devices, fewer or more: each device has its
// pieces of weights and optimizer state under the plan that was, and gets what it lacks of those under the next.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/program/program.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

struct state_move {
  std::vector<std::int64_t> received{};  ///< bytes, of each device under the next plan
  std::int64_t lost = 0;                 ///< bytes that no device has that is left: they come from a file

  std::int64_t most() const { return received.empty() ? 0 : *std::max_element(received.begin(), received.end()); }
  std::int64_t all() const { return std::accumulate(received.begin(), received.end(), std::int64_t{0}); }
};

namespace detail {

/// What of a tensor a device holds: of each dimension from one element to another.
struct tensor_piece {
  list<long, max_dims> from{}, to{};

  /// Elements in common.
  long common(const tensor_piece& other) const {
    long n = 1;
    for (int d = 0; d < from.size(); ++d)
      n *= std::max(0l, std::min(to[d], other.to[d]) - std::max(from[d], other.from[d]));
    return n;
  }
  friend bool operator==(const tensor_piece&, const tensor_piece&) = default;
};

inline tensor_piece piece_of(const extents& whole, const partition& held, const mesh_shape& mesh, int device) {
  tensor_piece out;
  for (int d = 0; d < whole.size(); ++d) {
    long first = 0, size = whole[d];
    if (d < held.dims.size())
      for (const signed char a : held.dims[d]) {
        size /= mesh.size(a);
        first += size * mesh.coordinate(device, a);
      }
    out.from.push(first), out.to.push(first + size);
  }
  return out;
}

/// Of a program's state, by name, how a tensor rests on its devices.
inline std::map<std::string, const buffer*> resting_state(const program& p, const graph& g) {
  std::map<std::string, const buffer*> out;
  for (const buffer& b : p.buffers) {
    if (!b.persistent || b.left_over || b.value < 0) continue;
    const value& v = g[b.value];
    if (v.producer < 0 && (v.role == value_role::weight || v.role == value_role::state))
      out.try_emplace(std::string(v.label.view()), &b);
  }
  return out;
}

}  // namespace detail

/// `before`: of each device of the next plan, its number under the one that was; -1: it is new. None: they are the
/// same, from the first on. Throws bad_input where the plans are of different models. (Stages keep state apart, and are
/// not counted.)
inline state_move moved_state(const program& was, const graph& g, const program& next, const graph& h,
                              std::vector<int> before = {}) {
  const int devices = next.mesh.devices(), there = was.mesh.devices();
  if (before.empty())
    for (int d = 0; d < devices; ++d) before.push_back(d < there ? d : -1);
  if (static_cast<int>(before.size()) != devices)
    throw bad_input("devices: " + std::to_string(before.size()) + " are said to go on, and the next plan has " +
                    std::to_string(devices));
  for (const int d : before)
    if (d < -1 || d >= there) throw bad_input("devices: there was no device " + std::to_string(d));
  const std::map<std::string, const buffer*> old = detail::resting_state(was, g), now = detail::resting_state(next, h);
  state_move out;
  out.received.assign(static_cast<std::size_t>(devices), 0);
  for (const auto& [label, b] : now) {
    const auto a = old.find(label);
    const extents& whole = h[b->value].shape;
    if (a == old.end() || g[a->second->value].shape != whole)
      throw bad_input("state: '" + label + "' is not the same under both plans; they must be of one model");
    const auto piece_was = [&](int d) { return detail::piece_of(whole, a->second->held, was.mesh, d); };
    const long width = b->bytes / std::max(1l, elements(b->local));
    std::vector<detail::tensor_piece> left;  // that devices hold which go on, each once
    for (const int d : before)
      if (d >= 0)
        if (const detail::tensor_piece p = piece_was(d); std::find(left.begin(), left.end(), p) == left.end())
          left.push_back(p);
    long known = 0;
    for (const detail::tensor_piece& p : left) known += p.common(p);
    out.lost += (elements(whole) - known) * width;
    for (int d = 0; d < devices; ++d) {
      const detail::tensor_piece mine = detail::piece_of(whole, b->held, next.mesh, d);
      long has = 0;
      if (const int was_at = before[static_cast<std::size_t>(d)]; was_at >= 0) has = mine.common(piece_was(was_at));
      out.received[static_cast<std::size_t>(d)] += (mine.common(mine) - has) * width;
    }
  }
  return out;
}

}  // namespace cfp
