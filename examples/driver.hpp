// What the example programs share: running plans on CPU ranks, comparing them step by step, and verifying one against
// a single rank.
#pragma once

#include <cfp/plan/search.hpp>
#include <cfp/runtime/host/state_file.hpp>

#include <malloc.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <random>

namespace driver {

/// Bytes this thread holds through operator new, and the most it ever held. Fed by `counting_new.hpp`.
inline thread_local long bytes_now = 0, bytes_peak = 0;

/// The data of one pass: whole tensors of indices, by the label of the input they are for.
using batch = std::map<std::string, std::vector<std::int32_t>>;

/// What a model's inputs are made of.
struct inputs {
  std::map<std::string, long> reads{{"tokens", 0}, {"targets", 1}};  ///< cut from the text, this far behind the place of a row
  batch fixed;                                                       ///< the same in every step
  long reach() const {
    long most = 0;
    for (const auto& [label, shift] : reads) most = std::max(most, shift);
    return most;
  }
};

/// Batches cut from a text: each takes other places, the same for every mesh, and the same rows however a step cuts its batch.
class byte_text {
 public:
  byte_text(std::string text, long rows, long length, std::uint64_t seed, inputs what = {})
      : text_(std::move(text)), rows_(rows), length_(length), seed_(seed), what_(std::move(what)) {
    for (long i = 0; i < length_; ++i) what_.fixed["positions"].push_back(static_cast<std::int32_t>(i));
  }

  /// The batches of a step of so many passes.
  std::vector<batch> of_step(long step, int passes) const {
    std::vector<batch> out;
    for (int pass = 0; pass < passes; ++pass) out.push_back(at(step * passes + pass));
    return out;
  }
  batch at(long number) const {
    batch b = what_.fixed;
    for (long r = 0; r < rows_; ++r) {
      const auto w = cfp::host::random_words(seed_, 0, static_cast<std::uint64_t>(number * rows_ + r));
      const std::size_t from = w.v[0] % (text_.size() - static_cast<std::size_t>(length_ + what_.reach() - 1));
      for (const auto& [label, shift] : what_.reads)
        for (long i = 0; i < length_; ++i) b[label].push_back(static_cast<unsigned char>(text_[from + static_cast<std::size_t>(shift + i)]));
    }
    return b;
  }

 private:
  std::string text_;
  long rows_, length_;
  std::uint64_t seed_;
  inputs what_;
};

template <class Executor>
void give(Executor& run, const cfp::graph& g, const batch& b) {
  for (const auto& [label, data] : b)
    if (const int v = g.find(label); v >= 0) run.memory().set_input(v, data);
}

inline std::vector<int> sizes(const cfp::mesh_shape& mesh) {
  std::vector<int> out;
  for (const cfp::mesh_axis& a : mesh.axes) out.push_back(a.size);
  return out;
}

/// What a run of some steps leaves.
template <class T>
struct trained {
  std::vector<double> loss;
  std::vector<std::vector<cfp::wide_t<T>>> before, after;  ///< per weight (ids in `weights`), whole tensors
  std::vector<int> weights;
};

/// Trains `steps` steps: from the beginning, or from a saved state; the state afterwards goes into `to` if it `saves`: one process has it
/// in a file, `to` of others is null.
template <class T, class S = float, class Pool = cfp::rank_pool>
trained<T> train(const cfp::program& p, const cfp::graph& g, const cfp::host::kernels<T>& k, const byte_text& text,
                 long steps, std::uint64_t seed, const cfp::host::state_file<S>* from = nullptr, cfp::host::state_file<cfp::wide_t<T>>* to = nullptr, bool saves = false) {
  trained<T> out;
  for (int v = 0; v < g.value_count(); ++v)
    if (g[v].role == cfp::value_role::weight && g[v].producer < 0) out.weights.push_back(v);
  for (int v : out.weights) {
    out.before.emplace_back(static_cast<std::size_t>(cfp::elements(g[v].shape)));
    out.after.emplace_back(static_cast<std::size_t>(cfp::elements(g[v].shape)));
  }
  Pool pool(sizes(p.mesh));
  pool.run([&]<class Rank>(Rank& rank) {
    cfp::host::executor<T, Rank> run(p, g, k, rank, seed);
    const auto collect = [&](int value, cfp::wide_t<T>* whole) {
      run.memory().collect(value, whole);
      rank.complete(whole, static_cast<std::size_t>(cfp::elements(g[value].shape)));
    };
    if (from != nullptr)
      for (const auto& [value, whole] : from->tensors()) run.memory().place(value, whole);
    for (std::size_t w = 0; w < out.weights.size(); ++w) collect(out.weights[w], out.before[w].data());
    const long done = from != nullptr ? from->step() : 0;
    for (long s = done + 1; s <= done + steps; ++s) {
      const std::vector<batch> data = text.of_step(s, p.passes);
      run.run(s, [&](int pass) { give(run, g, data[static_cast<std::size_t>(pass)]); });
      if (rank.leads()) out.loss.push_back(run.loss());
    }
    for (std::size_t w = 0; w < out.weights.size(); ++w) collect(out.weights[w], out.after[w].data());
    if (to == nullptr && !saves) return;
    for (int v = 0; v < g.value_count(); ++v) {
      if (!cfp::host::state_file<cfp::wide_t<T>>::is_state(g[v])) continue;
      std::vector<cfp::wide_t<T>> elsewhere(to == nullptr ? static_cast<std::size_t>(cfp::elements(g[v].shape)) : 0);
      collect(v, to == nullptr ? elsewhere.data() : to->data(v));
    }
  });
  return out;
}

/// Elements of the weights that rounding decides: where the gradient is zero but for rounding (key biases; a gradient
/// that crosses zero), Adam turns its noise into whole steps, so that two correct programs differ there.
struct undecided {
  std::vector<std::vector<bool>> elements;  ///< per weight; empty: none
  long count = 0, of = 0;
  std::string most;  ///< the weight with the largest share
};

/// Found without any plan: one rank's training in `T` against the same in float64. An element is undecided where the
/// two differ by more than 1e-3 of the root mean square change of its tensor, or by more than 1e-2 of its own.
template <class T>
undecided rounding_decides(const trained<T>& a, const trained<double>& exact, const cfp::graph& g) {
  undecided u;
  double largest = 0;
  for (std::size_t w = 0; w < a.weights.size(); ++w) {
    const std::size_t n = a.after[w].size();
    double moved = 0;
    for (std::size_t i = 0; i < n; ++i) moved += std::pow(exact.after[w][i] - exact.before[w][i], 2);
    const double bound = 1e-3 * std::sqrt(moved / static_cast<double>(n));
    std::vector<bool> out(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(a.after[w][i]) - static_cast<double>(a.before[w][i]);
      const double y = exact.after[w][i] - exact.before[w][i];
      out[i] = std::abs(x - y) > std::min(bound, 1e-2 * std::abs(y));  // not what is no number: that is no rounding
    }
    const long count = std::count(out.begin(), out.end(), true);
    if (const double share = static_cast<double>(count) / static_cast<double>(n); share > largest)
      largest = share, u.most = std::string(g[a.weights[w]].label.view());
    u.count += count;
    u.of += static_cast<long>(n);
    u.elements.push_back(std::move(out));
  }
  return u;
}

/// How far two trainings are apart.
struct difference {
  double loss = 0;        ///< largest relative difference of a step's loss
  double parameters = 0;  ///< largest |difference| / |change by training| over tensors
  std::string worst;      ///< the tensor it is of
};

/// What is no number is as far apart as can be.
inline void widen(double& most, double apart) {
  if (!(apart <= most)) most = std::isnan(apart) ? std::numeric_limits<double>::infinity() : apart;
}

template <class T>
difference compare(const trained<T>& a, const trained<T>& b, const cfp::graph& g, const undecided& left_out = {}) {
  difference d;
  for (std::size_t s = 0; s < a.loss.size(); ++s) widen(d.loss, std::abs(a.loss[s] - b.loss[s]) / std::abs(a.loss[s]));
  for (std::size_t w = 0; w < a.weights.size(); ++w) {
    double apart = 0, moved = 0;
    for (std::size_t i = 0; i < a.after[w].size(); ++i) {
      if (!left_out.elements.empty() && left_out.elements[w][i]) continue;
      const double x = static_cast<double>(a.after[w][i]), y = static_cast<double>(b.after[w][i]);
      const double z = static_cast<double>(a.before[w][i]);
      apart += (x - y) * (x - y);
      moved += (x - z) * (x - z);
    }
    const double ratio = moved == 0 && apart == 0 ? 0.0 : std::sqrt(apart / moved);
    if (!(ratio <= d.parameters)) d.worst = std::string(g[a.weights[w]].label.view());
    widen(d.parameters, ratio);
  }
  return d;
}

/// What running a plan showed.
struct observed {
  std::vector<double> ms;      ///< per step, slowest rank
  long peak_bytes = 0;         ///< most any rank held
  cfp::collective_count sent;  ///< counted in the communicators, per step, by the first rank of a process
  double outside = 0;          ///< share of a step outside kernels and conversions
};

/// Runs all plans in turn, step by step, `steps` of each after a warm-up. `links` of the first axes, where they are to be slow.
template <class T, class Pool = cfp::rank_pool>
std::vector<observed> race(const std::vector<const cfp::plan*>& plans, const cfp::graph& g, const cfp::mesh_shape& mesh, const cfp::host::kernels<T>& k,
                           const byte_text& text, int steps, std::uint64_t seed, const std::function<void(int, int)>& tell, const std::vector<cfp::rank_link>& links = {}) {
  std::vector<observed> out(plans.size());
  Pool pool(sizes(mesh));
  if constexpr (std::is_same_v<Pool, cfp::rank_pool>)
    for (std::size_t axis = 0; axis < links.size(); ++axis) pool.set_link(static_cast<int>(axis), links[axis]);
  pool.run([&]<class Rank>(Rank& rank) {
    std::vector<std::unique_ptr<cfp::host::executor<T, Rank>>> runs;
    std::vector<std::int64_t> peaks;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const long base = bytes_now;
      bytes_peak = base;
      runs.push_back(std::make_unique<cfp::host::executor<T, Rank>>(plans[p]->code, g, k, rank, seed));
      runs.back()->run(1, [&](int pass) { give(*runs.back(), g, text.at(pass)); });
      peaks.push_back(bytes_peak - base);
    }
    rank.world.all_reduce(peaks.data(), peaks.size(), cfp::reduction::max);
    for (auto& r : runs) r->spent = {};
    for (int s = 0; s < steps; ++s) {
      for (std::size_t turn = 0; turn < plans.size(); ++turn) {
        const std::size_t p = (turn + static_cast<std::size_t>(s)) % plans.size();  // no plan always follows the same one
        const std::vector<batch> data = text.of_step(s + 2, plans[p]->code.passes);
        if (s == 0)
          for (auto& axis : rank.axes) axis.reset_counted();
        rank.world.barrier();
        const auto start = std::chrono::steady_clock::now();
        runs[p]->run(s + 2, [&](int pass) { give(*runs[p], g, data[static_cast<std::size_t>(pass)]); });
        double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
        if (s == 0 && rank.leads())
          for (auto& axis : rank.axes)
            for (std::size_t c = 0; c < 5; ++c) {
              out[p].sent.calls[c] += axis.counted().calls[c];
              out[p].sent.bytes[c] += axis.counted().bytes[c];
            }
        rank.world.all_reduce(&ms, 1, cfp::reduction::max);
        if (rank.leads()) out[p].ms.push_back(ms);
      }
      if (rank.leads() && tell) tell(s + 1, steps);
    }
    if (!rank.leads()) return;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const auto& t = runs[p]->spent;
      out[p].outside = 1 - (t.kernels + t.conversions) / t.total;
      out[p].peak_bytes = peaks[p];
    }
  });
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
    medians.push_back(cfp::median(sample));
  }
  std::sort(medians.begin(), medians.end());
  return {cfp::median(ratio), medians[50], medians[1949]};
}

}  // namespace driver
