// What a sweep measures with: programs made for it, of sizes that grow as long as time allows.
#pragma once

#include <cfp/model/model.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/profile/measure/measure.hpp>
#include <cfp/program/lower.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct sweep_options {
  double seconds = 0.5;  ///< for one configuration; sizes that would take longer are left out
  long least = 1024;  ///< bytes of the smallest collective, as nccl-tests counts them; each next has four times as many
  long most = 64l << 20;  ///< of the largest
  long product =
      8192;  ///< most rows, columns and inner size of a matrix product; the first has 64, each next twice as many
  long stream = 64l << 20;  ///< most bytes of each of the three tensors that tell the rate of memory
  long memory = 0;          ///< bytes a program may use of a device; 0: what a GPU has free, or the host over its ranks
  std::string by = "cfp sweep";                                            ///< who measures, in the sources of figures
  std::function<void(int done, int all, const std::string& what)> tell{};  ///< called before each configuration
};

namespace detail {

/// Sizes, and seconds of each.
using swept_sizes = std::vector<std::pair<double, double>>;

/// How many sizes there are from the least to the most.
constexpr int sizes_between(long least, long most, int factor) {
  int n = 1;
  while ((least *= factor) <= most) ++n;
  return n;
}

/// What is left of a time without what is known of it: at least a tenth.
inline double beyond(double known, double seconds) { return std::max(seconds - known, seconds / 10); }

/// Four digits: more is not measured.
inline double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", x);
  return std::strtod(text, nullptr);
}

/// Programs timed on all ranks of a backend. Every process gets the same figures.
class sweep_times {
 public:
  /// The backend must outlive this.
  sweep_times(backend& on, const sweep_options& o) : of(o), on_(on) {
    const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
    char date[16];
    std::snprintf(date, sizeof date, "%04d-%02u-%02u", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                  static_cast<unsigned>(day.day()));
    source = "measured by " + o.by + " on " + on.description() + ", " + date;
    how_.least = 5;
    how_.most = 30;
    how_.seconds = o.seconds;
  }

  struct timed {
    graph g;
    program p;
  };

  const sweep_options of;
  std::string source;     ///< of figures, in words
  int done = 0, all = 0;  ///< configurations

  backend& on() const { return on_; }
  long real_bytes() const { return on_.lowered_for().real_bytes; }

  /// Operators on every rank, none of them split.
  timed operators(const model& net) const {
    const graph g = with_random_inputs(refine(net.recorded));
    program p = lower(g, on_.mesh(), sharding::replicated(g), all_operations(g), real_bytes());
    on_.lowered_for().complete(p, g);
    return {g, std::move(p)};
  }

  /// Seconds of a program that a step has so many copies of, per copy: what a step begins and ends with weighs little.
  double one_of(timed m, int copies) const {
    const std::vector<instruction> code = m.p.code;
    for (int n = 1; n < copies; ++n) m.p.code.insert(m.p.code.end(), code.begin(), code.end());
    m.p.begin = 0;
    m.p.end = static_cast<int>(m.p.code.size());
    return std::max(measure(on_, m.p, m.g, how_).median / 1000 / copies, 1e-9);
  }

  /// `time(size, copies)` for sizes from the least to the most, each `factor` times the one before. Ends before one
  /// that would take longer than a configuration may, if it has `more` times the work.
  template <class Time>
  swept_sizes growing(const std::string& what, long least, long most, int factor, int more, const Time& time) {
    swept_sizes out;
    int copies = 8;
    const int after = done + sizes_between(least, most, factor);
    for (long size = least; size <= most || out.empty(); size *= factor) {
      if (of.tell) of.tell(done, all, "measuring " + what + " of size " + std::to_string(size));
      out.emplace_back(size, time(size, copies));
      const double next = more * out.back().second;
      ++done;
      if (next > of.seconds) break;
      copies = static_cast<int>(std::clamp(of.seconds / 10 / next, 1.0, 32.0));
    }
    done = after;
    return out;
  }

  /// The least of what all ranks say.
  double least_of(double mine) const {
    double out = mine;
    on_.run([&](rank& r) {
      double x = mine;
      r.combine(std::span(&x, 1), reduction::min);
      if (r.leads()) out = x;
    });
    return out;
  }

 private:
  backend& on_;
  measure_options how_;
};

}  // namespace detail

}  // namespace cfp
