// Plans run against each other: in turn, step by step, so that what disturbs one disturbs all.
#pragma once

#include <cfp/profile/summary.hpp>
#include <cfp/program/count_collectives.hpp>
#include <cfp/session/train.hpp>

#include <array>
#include <random>

namespace cfp::inline v0_1 {

/// What running a program showed.
struct observed {
  std::vector<double> ms{};     ///< per step, slowest rank
  long peak_bytes = 0;          ///< most any rank held for it
  collective_count sent{};      ///< counted in the communicators, per step, by the first rank of a process
  collective_count inferred{};  ///< what that rank's program says it sends
  double outside = 0;           ///< share of a step outside kernels and conversions
};

struct race_options {
  int steps = 20;
  std::uint64_t seed = 1;
  std::function<bool(int done, int of)> tell{};  ///< after each step, by the first process; false: enough
};

namespace detail {

class racer {
 public:
  racer(rank& r, const std::vector<rank_programs>& programs, const graph& g, shared_batches& data,
        const race_options& o)
      : rank_(r), programs_(programs), g_(g), data_(data) {
    for (const rank_programs& p : programs) {
      const long base = r.bytes();
      loaded_.push_back(r.load(p.of(r.number()), p.graph_of(g), o.seed));
      step(loaded_.size() - 1, 1);
      peaks_.push_back(static_cast<double>(r.bytes() - base));
    }
    r.combine(peaks_, reduction::max);
    for (auto& p : loaded_) p->clear_times();
  }

  // Milliseconds on the slowest rank.
  double timed_step(std::size_t p, long number) {
    rank_.barrier();
    const auto start = std::chrono::steady_clock::now();
    step(p, number);
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    rank_.combine(std::span(&ms, 1), reduction::max);
    return ms;
  }
  collective_count counted() const {
    collective_count out;
    for (const traffic& axis : rank_.counted())
      for (std::size_t c = 0; c < out.calls.size(); ++c) {
        out.calls[c] += axis.calls[c];
        out.bytes[c] += axis.bytes[c];
      }
    return out;
  }
  void summarise(std::vector<observed>& out) const {
    for (std::size_t p = 0; p < loaded_.size(); ++p) {
      const step_times t = loaded_[p]->times();
      out[p].outside = t.kernels > 0 ? 1 - (t.kernels + t.conversions) / t.total : 0;
      out[p].peak_bytes = static_cast<long>(peaks_[p]);
      out[p].inferred = count_collectives(programs_[p].of(rank_.number()), programs_[p].graph_of(g_), rank_.number());
    }
  }

 private:
  void step(std::size_t p, long number) {
    const int passes = programs_[p].of(rank_.number()).passes;
    loaded_[p]->step(number, passes, [&](int pass) { data_.feed(*loaded_[p], number * passes + pass); });
  }

  rank& rank_;
  const std::vector<rank_programs>& programs_;
  const graph& g_;
  shared_batches& data_;
  std::vector<std::unique_ptr<loaded_program>> loaded_;
  std::vector<double> peaks_;
};

}  // namespace detail

/// Runs all programs in turn, step by step, after a warm-up. Throws `cancelled`, what `tell`
/// threw, bad_input for data that do not fit, and what `backend::run` does.
inline std::vector<observed> race(backend& on, const std::vector<rank_programs>& programs, const graph& g,
                                  const batch_source& data, const race_options& o = {}) {
  std::vector<observed> out(programs.size());
  shared_batches batches(g, data);
  bool enough = false;
  detail::callback told;
  const auto all_steps = [&](rank& r) {
    detail::racer all(r, programs, g, batches, o);
    for (int s = 0; s < o.steps; ++s) {
      for (std::size_t turn = 0; turn < programs.size(); ++turn) {
        const std::size_t p = (turn + static_cast<std::size_t>(s)) % programs.size();  // none always follows the same
        if (s == 0) r.reset_counted();
        const double ms = all.timed_step(p, s + 2);
        if (!r.leads()) continue;
        out[p].ms.push_back(ms);
        if (s == 0) out[p].sent = all.counted();
      }
      if (!o.tell) continue;
      bool stop = r.number() == 0 && !told.go_on(o.tell, s + 1, o.steps);
      r.agree(std::as_writable_bytes(std::span(&stop, 1)));
      if (!stop) continue;
      if (r.leads()) enough = true;
      return;
    }
    if (r.leads()) all.summarise(out);
  };
  on.run([&](rank& r) {
    try {
      all_steps(r);
    } catch (const shared_batches::ended&) {}
  });
  told.rethrow();
  batches.rethrow();
  if (enough) throw cancelled();
  return out;
}

/// Median of the paired ratios a/b and its 95% bootstrap interval.
inline std::array<double, 3> paired_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratio;
  for (std::size_t i = 0; i < a.size(); ++i) ratio.push_back(a[i] / b[i]);
  std::mt19937 random(1);
  std::vector<double> medians;
  for (int r = 0; r < 2000; ++r) {
    std::vector<double> sample;
    for (std::size_t i = 0; i < ratio.size(); ++i) sample.push_back(ratio[random() % ratio.size()]);
    medians.push_back(median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {median(ratio), medians[50], medians[1949]};
}

}  // namespace cfp
