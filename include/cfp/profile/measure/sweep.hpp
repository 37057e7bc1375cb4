// Measures a machine on whatever ranks there are: what a device does by itself, and collectives along the axes of their
// mesh. What comes out plans as a description does, and can be kept as its file.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/profile/machine/machine_check.hpp>
#include <cfp/profile/measure/sweep_device.hpp>
#include <cfp/program/conversion_program.hpp>

namespace cfp::inline v0_1 {

namespace detail {

/// Measures collectives along an axis of the ranks' mesh, which becomes a level of the machine.
class link_sweep {
 public:
  /// Launches and memory of the device are known.
  link_sweep(sweep_times& times, machine& m, int axis)
      : times_(times), machine_(m), mesh_(times.on().mesh()), axis_(axis), n_(mesh_.size(axis)),
        label_(mesh_.axes[axis].label.view()), entry_("levels." + label_) {
    // Of one axis the ranks may be alone on their machines.
    across_ = n_ > 1 && (mesh_.rank() == 2 ? axis == 0 : times.least_of(-times.on().on_this_machine()) == -1);
  }

  static int configurations(const sweep_options& o) { return 4 * sizes_between(o.least, o.most, 4); }

  void run() {
    interconnect level;
    level.name = label_;
    level.joins = static_cast<int>(n_);
    level.kind = across_ ? interconnect::network : interconnect::plain;
    level.bandwidth = machine_.device.bandwidth;
    for (const char* of : {".latency", ".channels"}) machine_.sources[entry_ + of] = "not measured: sweeps correct it";
    machine_.sources[entry_ + ".bandwidth"] = "not measured: one device";
    if (n_ > 1) {
      std::vector<collective_sweep> sweeps;
      for (const collective_kind kind : {collective_kind::all_reduce, collective_kind::all_gather,
                                         collective_kind::reduce_scatter, collective_kind::all_to_all})
        sweeps.push_back(sweep_of(kind));
      describe(level, sweeps);
      machine_.sweeps.insert(machine_.sweeps.end(), sweeps.begin(), sweeps.end());
    }
    machine_.levels.push_back(level);
  }

 private:
  // The bandwidth that the largest messages attain; of links inside a machine what the smallest take.
  void describe(interconnect& level, const std::vector<collective_sweep>& sweeps) const {
    level.bandwidth = 0;
    double least = std::numeric_limits<double>::infinity();
    for (const collective_sweep& s : sweeps) {
      const auto& [bytes, seconds] = s.points.back();
      const double whole = bytes * (s.kind == collective_kind::all_to_all ? s.devices : 1);
      const auto sent = static_cast<double>(bytes_sent(s.kind, static_cast<long>(whole), s.devices));
      level.bandwidth = std::max(level.bandwidth, rounded(s.at_once * sent / beyond(machine_.device.launch, seconds)));
      least = std::min(least, s.points.front().second);
    }
    machine_.sources[entry_ + ".bandwidth"] = times_.source + ": the largest collectives";
    if (level.kind != interconnect::plain) return;
    level.latency = std::max(rounded(least - machine_.device.launch), 0.0);
    machine_.sources[entry_ + ".latency"] = times_.source + ": the smallest collectives";
  }

  collective_sweep sweep_of(collective_kind kind) {
    collective_sweep out;
    out.kind = kind;
    out.devices = static_cast<int>(n_);
    out.nodes = across_ ? out.devices : 1;
    out.at_once = across_ ? mesh_.devices() / out.devices : 1;
    out.source = times_.source;
    const std::string what = std::string(collective_names[static_cast<std::size_t>(kind)]) + " along " + label_;
    times_.growing(what, times_.of.least, times_.of.most, 4, 4, [&](long bytes, int copies) {
      const long piece = std::max(bytes / times_.real_bytes() / n_, 1l);
      const double held = static_cast<double>(n_ * piece * times_.real_bytes()),
                   seconds = seconds_of(kind, piece, copies);
      if (out.points.empty() || held > out.points.back().first) out.points.emplace_back(held, rounded(seconds));
      return seconds;
    });
    return out;
  }

  // Of a collective as plans have it. Of an all-to-all every rank holds `piece` for each, of others all together; and
  // packing is left out, a copy of each piece before and one behind: plans pay for it besides.
  double seconds_of(collective_kind kind, long piece, int copies) const {
    const partition whole = partition::replicated(2);
    conversion_step step;
    step.kind = static_cast<conversion_step::kind_t>(kind);
    step.axis = static_cast<signed char>(axis_);
    partition from = whole;
    if (kind == collective_kind::all_reduce || kind == collective_kind::reduce_scatter)
      from.partial[axis_] = {true, reduction::sum};
    else from.split(0, axis_);
    if (kind != collective_kind::all_to_all) return times_.one_of(conversion(from, step, piece), copies);
    step.to = 1;
    conversion_step copy;
    copy.kind = conversion_step::slice;
    copy.axis = step.axis;
    const int pieces = 2 * static_cast<int>(n_);
    const double packing = pieces * times_.one_of(conversion(whole, copy, piece), std::min(pieces * copies, 1024));
    return beyond(packing, times_.one_of(conversion(from, step, n_ * piece), copies));
  }

  // A step of a conversion of a tensor with a row for each rank; an all-reduce works in the memory of its operand.
  sweep_times::timed conversion(const partition& from, const conversion_step& step, long columns) const {
    model net;
    const int v = net.activation("x", {{"rows", n_}, {"columns", columns}}).id;
    const graph g = with_random_inputs(net.recorded);
    program p = conversion_program(g, mesh_, v, from, step, times_.real_bytes());
    if (step.kind == conversion_step::all_reduce) p.code[0].out[0] = p.code[0].in[0];
    plan_memory(p);
    return {g, std::move(p)};
  }

  sweep_times& times_;
  machine& machine_;
  const mesh_shape mesh_;
  const int axis_;
  const long n_;
  const std::string label_, entry_;
  bool across_ = false;
};

}  // namespace detail

/// Measures the machine that the ranks run on, all of them at once: launches, memory, products, and every collective
/// along each axis of their mesh, of which the first of two goes across machines. Throws bad_input for another mesh.
inline machine sweep(backend& on, const sweep_options& options = {}) {
  const mesh_shape mesh = on.mesh();
  if (mesh.rank() > 2)
    throw bad_input("mesh " + to_string(mesh) + ": a sweep takes one axis, or two of which the first goes across " +
                    "machines");
  if (options.least < 1 || options.most < options.least || !(options.seconds > 0))
    throw bad_input("a sweep needs sizes from 1 byte up, and time");
  detail::sweep_times times(on, options);
  std::vector<int> axes;  // from the inside out
  for (int a = mesh.rank() - 1; a >= 0; --a)
    if (mesh.size(a) > 1 || (a == 0 && axes.empty())) axes.push_back(a);
  times.all = detail::device_sweep::configurations(options) +
              (mesh.devices() > 1 ? static_cast<int>(axes.size()) * detail::link_sweep::configurations(options) : 0);
  machine m;
  m.name = on.description() + ", " + to_string(mesh);
  detail::device_sweep(times, m).run();
  for (const int a : axes) detail::link_sweep(times, m, a).run();
  validate(m);
  return m;
}

/// Adds the rate of products in the numbers of another backend on the same devices.
inline void sweep_products(machine& m, backend& on, const sweep_options& options = {}) {
  detail::sweep_times times(on, options);
  times.all = detail::sizes_between(64, options.product, 2);
  detail::device_sweep(times, m).products();
}

}  // namespace cfp
