#include "arguments.hpp"
#include "commands.hpp"
#include "ranks.hpp"

#include <cfp/model/read_mesh.hpp>
#include <cfp/profile/machine/machine_writer.hpp>
#include <cfp/profile/measure/sweep.hpp>
#include <cfp/session/texts.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>

namespace program {

namespace {

using cfp::detail::printed;

std::string size_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; unit < 3 && bytes >= 1024; ++unit) bytes /= 1024;
  return printed("%.4g %s", bytes, units[unit]);
}

void print_device(const cfp::device_type& d, bool given) {
  for (const auto& [type, rate] : d.product_rate)
    std::cout << printed("products in %-9s %12.4g TFLOP/s\n", type.c_str(), rate / 1e12);
  std::cout << printed("memory              %12.4g GB/s read and written\n", d.bandwidth / 1e9)
            << printed("an operator         %12.4g us at least\n", 1e6 * d.launch)
            << printed("a program may use   %12.4g GiB of a device%s\n", static_cast<double>(d.memory) / (1l << 30),
                       given ? "" : ": the host's memory over its ranks, --memory says it otherwise");
}

// Of the sweeps along one axis, beside each other; those that are missing took too long.
void print_collectives(const cfp::machine& m, std::size_t from, std::size_t to) {
  const cfp::collective_sweep& first = m.sweeps[from];
  std::cout << printed("\n%d ranks on %d machine%s", first.devices, first.nodes, first.nodes > 1 ? "s" : "");
  if (first.at_once > 1) std::cout << printed(", %d such groups at once", first.at_once);
  std::cout << printed("\n%10s", "size");
  std::size_t rows = 0;
  for (std::size_t s = from; s < to; ++s) {
    std::cout << printed(" %15s us    GB/s", cfp::collective_names[static_cast<std::size_t>(m.sweeps[s].kind)].data());
    rows = std::max(rows, m.sweeps[s].points.size());
  }
  std::cout << '\n';
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t s = from; s < to; ++s) {
      const auto& points = m.sweeps[s].points;
      if (s == from)
        std::cout << printed("%10s", size_text(first.points[std::min(row, points.size() - 1)].first).c_str());
      if (row >= points.size()) std::cout << printed(" %18s %7s", "-", "-");
      else
        std::cout << printed(" %18.1f %7.3f", 1e6 * points[row].second, points[row].first / points[row].second / 1e9);
    }
    std::cout << '\n';
  }
}

void print(const cfp::machine& m, bool memory_given) {
  std::cout << m.name << '\n';
  print_device(m.device, memory_given);
  for (std::size_t from = 0, to = 0; from < m.sweeps.size(); from = to) {
    while (to < m.sweeps.size() && m.sweeps[to].devices == m.sweeps[from].devices &&
           m.sweeps[to].nodes == m.sweeps[from].nodes)
      ++to;
    print_collectives(m, from, to);
  }
  if (!m.sweeps.empty())
    std::cout
        << "size: what a rank of an all_reduce or all_to_all holds, of others all together; an all_to_all without "
           "packing\n";
}

}  // namespace

int sweep(const arguments& a) {
  const cfp::mesh_shape mesh = cfp::read_mesh(a.mesh);
  const auto make_waiting = [&a, &mesh, make = ranks_of(a)](cfp::number type) {
    std::unique_ptr<cfp::backend> ranks = make(mesh, type, {});
    ranks->set_deadline(std::chrono::nanoseconds(static_cast<std::int64_t>(a.deadline * 1e9)));
    return ranks;
  };
  cfp::sweep_options o;
  o.seconds = a.seconds;
  o.most = a.most;
  o.memory = a.memory;
  o.tell = [](int done, int all, const std::string& what) { show_progress({what, static_cast<double>(done) / all}); };
  cfp::machine m;
  bool over = false;
  {
    const auto ranks = make_waiting(a.is_given("--type") ? a.number() : cfp::number::bfloat16);
    over = is_oversubscribed(*ranks);
    m = cfp::sweep(*ranks, o);
  }
  if (!a.is_given("--type")) sweep_products(m, *make_waiting(cfp::number::float32), o);
  clear_progress();
  if (!is_first()) return 0;
  print(m, a.memory > 0);
  if (over) std::cout << "more ranks than cores: these times are no timings\n";
  answer(a, machine_text(m));
  if (!a.save_machine.empty()) write_machine(m, a.save_machine);
  return 0;
}

}  // namespace program
