// Measures what a device does by itself: launches, memory, products.
#pragma once

#include <cfp/backend/device_memory.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/profile/machine/operator_time.hpp>
#include <cfp/profile/measure/sweep_times.hpp>
#include <cfp/profile/work.hpp>

#include <unistd.h>

#include <cmath>
#include <limits>

namespace cfp::inline v0_1::detail {

/// Measures what a machine says of its device, and notes where that is from.
class device_sweep {
 public:
  device_sweep(sweep_times& times, machine& m) : times_(times), device_(m.device), sources_(m.sources) {}

  static int configurations(const sweep_options& o) {
    return 1 + sizes_between(least_stream(o), o.stream, 4) + sizes_between(64, o.product, 2);
  }

  void run() {
    device_.name = times_.on().description();
    device_.product_rate.clear();
    memory();
    products();
  }

  /// The rate of products of the backend's numbers; of the first a machine has also the tiles that explain them best.
  void products() {
    const number type = times_.on().type();
    const swept_sizes all = times_.growing("products", 64, times_.of.product, 2, 8, [&](long n, int copies) {
      model net;
      const tensor a = net.activation("a", {{"rows", n}, {"inner", n}});
      linear(a, net.activation("b", {{"inner", n}, {"columns", n}}));
      return times_.one_of(times_.operators(net), copies);
    });
    double rate = 0;
    for (const auto& [n, seconds] : all) rate = std::max(rate, 2 * n * n * n / beyond(device_.launch, seconds));
    const std::string as(type == number::float16 ? "bfloat16" : name_of(type));  // a machine tells types by their bytes
    device_.product_rate[as] = rounded(rate);
    sources_["device.product_rate." + as] = times_.source + ": the best of products in " + std::string(name_of(type)) +
                                            " of up to " + std::to_string(static_cast<long>(all.back().first)) +
                                            " rows";
    if (device_.product_rate.size() == 1) fit_tiles(all);
  }

 private:
  static long least_stream(const sweep_options& o) { return std::min(1l << 20, o.stream); }

  double sum_of_two(long bytes, int copies, double* traffic = nullptr) const {
    model net;
    const dimension all{"numbers", std::max(bytes / times_.real_bytes(), 1l)};
    add(net.activation("a", {all}), net.activation("b", {all}));
    const sweep_times::timed m = times_.operators(net);
    if (traffic != nullptr) *traffic = work_of(m.p, m.g).traffic;
    return times_.one_of(m, copies);
  }

  void memory() {
    const sweep_options& o = times_.of;
    const swept_sizes tiny = times_.growing("the launch of an operator", 256, 256, 4, 4,
                                            [&](long bytes, int) { return sum_of_two(bytes, 32); });
    device_.launch = rounded(tiny[0].second);
    double traffic = 0;
    const swept_sizes sums = times_.growing("memory", least_stream(o), o.stream, 4, 4, [&](long bytes, int copies) {
      return sum_of_two(bytes, copies, &traffic);
    });
    device_.bandwidth = rounded(traffic / beyond(device_.launch, sums.back().second));
    const device_memory own = memory_of(times_.on());
    device_.memory = o.memory > 0 ? o.memory : own ? own.free : host_share();
    sources_["device.launch"] = times_.source + ": sums of a few numbers, one after another";
    sources_["device.bandwidth"] = times_.source + ": sums of two tensors that read and write " +
                                   std::to_string(static_cast<long>(traffic)) + " bytes";
    sources_["device.memory"] = o.memory > 0 ? "given to " + o.by
                                : own        ? times_.source + ": free beside contexts, NCCL and libraries"
                                             : "the memory of the host over the ranks on it";
    for (const char* entry : {"hand_over", "contention", "host_bandwidth"})
      sources_[std::string("device.") + entry] = "not measured";
  }

  long host_share() const {
    const double present = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    return static_cast<long>(times_.least_of(present / times_.on().on_this_machine()));
  }

  // How many processors share the tiles of a product. 1: small products attain the rate of large ones.
  void fit_tiles(const swept_sizes& all) {
    double best = std::numeric_limits<double>::infinity();
    device_type with = device_;
    for (with.processors = 1; with.processors <= 256; ++with.processors) {
      double apart = 0;
      for (const auto& [n, seconds] : all) {
        const double said = with.launch + product_seconds(with, times_.real_bytes(), product_shape{1, n, n, n});
        apart += std::pow(std::log(said / seconds), 2);
      }
      if (apart >= best) continue;
      best = apart;
      device_.processors = with.processors;
    }
    for (const char* entry : {"processors", "tile", "tile_depth"})
      sources_[std::string("device.") + entry] = "fits all products " + times_.source;
  }

  sweep_times& times_;
  device_type& device_;
  std::map<std::string, std::string>& sources_;
};

}  // namespace cfp::inline v0_1::detail
