// Described machines against what was published: collectives against every sweep in examples/machines, as described,
// and corrected by the machine's other points (each predicted from the rest); products against OpenXLA's table of an
// H100 (products.json).
#include "report.hpp"

#include <cfp/file/new_file.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/machine/operator_time.hpp>
#include <cfp/profile/measure/measure.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace cfp;

namespace {

struct errors {
  std::vector<double> all;
  void print() const {
    std::printf(" %7.1f%% %7.1f%%", 100 * median(all),
                all.empty() ? 0 : 100 * *std::max_element(all.begin(), all.end()));
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const char* json = argc == 3 && std::strcmp(argv[1], "--json") == 0 ? argv[2] : nullptr;
  if (argc > 1 && json == nullptr) return std::fprintf(stderr, "machines: takes --json FILE\n"), 2;
  std::vector<std::filesystem::path> files;
  for (const auto& f : std::filesystem::directory_iterator(CFP_SOURCE_DIR "/examples/machines"))
    files.push_back(f.path());
  std::sort(files.begin(), files.end());
  nlohmann::ordered_json out{{"sweeps", nlohmann::ordered_json::array()}};
  std::printf("%-18s %-14s %7s %6s %18s %18s\n%48s %8s %8s %8s %8s\n", "machine", "collective", "devices", "points",
              "as described", "others known", "", "median", "worst", "median", "worst");
  errors described, corrected;
  for (const auto& file : files) {
    const machine m = load_machine(file);
    for (std::size_t s = 0; s < m.sweeps.size(); ++s) {
      const collective_sweep& sweep = m.sweeps[s];
      const device_group g = group_of(m, sweep);
      errors by_model, by_others;
      for (std::size_t p = 0; p < sweep.points.size(); ++p) {
        const auto [bytes, seconds] = sweep.points[p];
        by_model.all.push_back(std::abs((m.device.launch + described_seconds(m, g, sweep.kind, bytes)) / seconds - 1));
        machine others = m;
        auto& points = others.sweeps[s].points;
        points.erase(points.begin() + static_cast<std::ptrdiff_t>(p));
        if (points.empty()) others.sweeps.erase(others.sweeps.begin() + static_cast<std::ptrdiff_t>(s));
        const double whole = sweep.kind == collective_kind::all_to_all ? bytes * sweep.devices : bytes;
        by_others.all.push_back(std::abs(collective_seconds(others, g, sweep.kind, whole) / seconds - 1));
      }
      std::printf("%-18s %-14s %7d %6zu", file.stem().c_str(),
                  std::string(collective_names[static_cast<std::size_t>(sweep.kind)]).c_str(), sweep.devices,
                  sweep.points.size());
      by_model.print();
      by_others.print();
      std::printf("\n");
      out["sweeps"].push_back({{"machine", file.stem()},
                               {"collective", collective_names[static_cast<std::size_t>(sweep.kind)]},
                               {"devices", sweep.devices},
                               {"points", sweep.points.size()},
                               {"described_median", median(by_model.all)},
                               {"corrected_median", median(by_others.all)}});
      described.all.insert(described.all.end(), by_model.all.begin(), by_model.all.end());
      corrected.all.insert(corrected.all.end(), by_others.all.begin(), by_others.all.end());
    }
  }
  std::printf("%-41s %6zu", "all points", described.all.size());
  described.print();
  corrected.print();
  std::printf("\n");
  std::ifstream table(CFP_SOURCE_DIR "/bench/products.json");
  const device_type h100 = load_machine(CFP_SOURCE_DIR "/examples/machines/h100-8.json").device;
  errors shaped, proportional;
  const nlohmann::json products = nlohmann::json::parse(table);
  for (const auto& p : products["points"]) {
    const product_shape s{p[0], p[1], p[2], p[3]};
    const double seconds = p[4],
                 traffic = 2 * s.batch * (s.rows * s.inner + s.inner * s.columns + s.rows * s.columns) / h100.bandwidth;
    shaped.all.push_back(std::abs((h100.launch + std::max(traffic, product_seconds(h100, 2, s))) / seconds - 1));
    proportional.all.push_back(
        std::abs((h100.launch + std::max(traffic, 2 * s.batch * s.rows * s.columns * s.inner / product_rate(h100, 2))) /
                     seconds -
                 1));
  }
  std::printf("\n%zu products on an H100: error by shape", shaped.all.size());
  shaped.print();
  std::printf(", at one rate");
  proportional.print();
  std::printf("\n");
  out["products"] = {{"points", shaped.all.size()},
                     {"by_shape_median", median(shaped.all)},
                     {"one_rate_median", median(proportional.all)}};
  out["described_median"] = median(described.all);
  out["corrected_median"] = median(corrected.all);
  if (json != nullptr) write_file(json, out.dump(1));
} catch (...) {
  return report();
}
