// What check_gradients does: derives on ranks, takes differences on one, compares.
#pragma once

#include <cfp/backend/threads.hpp>
#include <cfp/block/decisions.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/plan/realise.hpp>
#include <cfp/session/check_gradients.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/loss_along.hpp>
#include <cfp/session/shared_batches.hpp>
#include <cfp/session/sums_in_parts.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

class gradient_checker {
 public:
  gradient_checker(const graph& given, const gradient_options& options)
      : o_(options), given_(checked(given)), forward_(given) {
    if (o_.elements < 1) throw bad_input("of a tensor at least 1 element is tried, not " + std::to_string(o_.elements));
    if (o_.plans < 1) throw bad_input("at least 1 plan is tried, not " + std::to_string(o_.plans));
    one_.axes.push({"one", 1});
    out_.step = loss_along::step;
    out_.seed = o_.seed;
    ask();
    forward_ = refine(forward_);
    if (o_.data) batches_.emplace(given_, o_.data);
  }

  gradient_check run() {
    const std::unique_ptr<backend> single = threads(one_, number::float64, o_.kernels);
    const program alone = replicated(forward_, *single);
    job(*single, [&](rank& r) {  // what the tensors hold
      const auto p = r.load(alone, forward_, o_.seed);
      if (batches_) batches_->feed(*p, 0);
      for (std::size_t w = 0; w < asked_.size(); ++w) p->collect(asked_[w], std::span(whole_[w]));
    });
    derive_under_plans(*single);
    job(*single, [&](rank& r) {
      const auto p = r.load(alone, forward_, o_.seed);
      give(*p);
      p->step(1, 1);
      out_.loss = p->loss();
      for (std::size_t w = 0; w < asked_.size(); ++w) compare(*p, w);
    });
    return std::move(out_);
  }

 private:
  // Real inputs are made weights, whose gradients are derived.
  void ask() {
    for (int v = 0; v < forward_.value_count(); ++v) {
      value& x = forward_[v];
      if (x.producer >= 0 || x.type == element::index) continue;
      const bool input = x.role == value_role::input;
      if (!input && x.role != value_role::weight) continue;
      if (input && !o_.data && x.fill.deviation == 0) x.fill.deviation = 1;
      if (input && !o_.of_inputs) continue;
      x.role = value_role::weight;
      asked_.push_back(v);
      whole_.emplace_back(static_cast<std::size_t>(elements(x.shape)));
    }
  }

  program replicated(const graph& g, backend& on) const {
    program p = lower(g, one_, sharding::replicated(g), all_operations(g), on.lowered_for().real_bytes);
    on.lowered_for().complete(p, g);
    return p;
  }

  // Data that do not fit are said as they are, not as what a rank met.
  void job(backend& on, const std::function<void(rank&)>& of_rank) const {
    on.run([&](rank& r) {
      try {
        of_rank(r);
      } catch (const shared_batches::ended&) {}
    });
    if (batches_) batches_->rethrow();
  }

  void give(loaded_program& to) {
    if (batches_) batches_->feed(to, 0);
    for (std::size_t w = 0; w < asked_.size(); ++w) to.give(asked_[w], std::span<const double>(whole_[w]));
  }

  void derive_under_plans(backend& single) {
    training still;  // a rate of zero keeps the weights, and without a past the first moment is the gradient
    still.rate = still.beta1 = still.decay = 0;
    const graph g = differentiate(forward_, still);
    derive("one rank", replicated(g, single), g, single);
    if (o_.mesh.empty()) return;
    const mesh_shape mesh = read_mesh(o_.mesh);
    if (mesh.devices() == 1) return;
    const decision_graph d = decisions(g, parallel_blocks(g), mesh, axis_choice::regathered);
    if (!splits(d))
      throw bad_input("mesh " + o_.mesh +
                      " divides nothing of the model; choose axis sizes that divide one of its dimensions");
    const std::unique_ptr<backend> all = threads(mesh, number::float64, o_.kernels);
    std::mt19937 random(static_cast<std::mt19937::result_type>(o_.seed));
    const auto under = [&](const std::string& what, const std::vector<int>& choices) {
      const std::string label = what + " on " + o_.mesh;
      derive(label, realise(label, g, mesh, d, choices, all->lowered_for()).code, g, *all);
    };
    const std::optional<std::vector<int>> in_parts = sums_in_parts(g, d, random);
    if (in_parts) under("the plan of sums in parts", *in_parts);
    for (int n = 1; n <= o_.plans - in_parts.has_value(); ++n)
      under("random plan " + std::to_string(n), random_choices(d, random));
  }

  void derive(const std::string& label, const program& p, const graph& g, backend& on) {
    std::vector<std::vector<double>>& slopes = derived_.emplace_back();
    out_.plans.push_back(label);
    double& loss = out_.losses.emplace_back();
    for (const std::vector<double>& x : whole_) slopes.emplace_back(x.size());
    job(on, [&](rank& r) {
      const auto run = r.load(p, g, o_.seed);
      give(*run);
      run->step(1, 1);
      if (r.leads()) loss = run->loss();
      for (std::size_t w = 0; w < asked_.size(); ++w)
        if (const int moment = first_moment(g, asked_[w]); moment >= 0) run->collect(moment, std::span(slopes[w]));
    });
  }

  static int first_moment(const graph& g, int weight) {
    for (int v = 0; v < g.value_count(); ++v)
      if (g[v].of == weight && g[v].role == value_role::state) return v;
    return -1;  // no gradient reaches it
  }

  // Of a large tensor some at random, some among the largest (rows of a table that nothing asked for have none), and
  // where plans are the furthest apart.
  std::vector<long> to_try(std::size_t w) {
    const std::vector<double>& slope = derived_[0][w];
    const long n = static_cast<long>(slope.size());
    std::set<long> some;
    if (n <= o_.elements) {
      for (long i = 0; i < n; ++i) some.insert(i);
      return {some.begin(), some.end()};
    }
    const auto size = [&](long i) { return std::abs(slope[static_cast<std::size_t>(i)]); };
    std::uniform_int_distribution<long> any(0, n - 1);
    for (int t = 0; t < 8 * o_.elements && static_cast<int>(some.size()) < o_.elements; ++t) {
      long i = any(random_);
      if (t % 2 == 1)
        for (int look = 0; look < 200; ++look)
          if (const long other = any(random_); size(other) > size(i)) i = other;
      some.insert(i);
    }
    for (std::size_t p = 1; p < derived_.size(); ++p) {
      const auto apart = [&](long i) {
        const double d = std::abs(derived_[p][w][static_cast<std::size_t>(i)] - slope[static_cast<std::size_t>(i)]);
        return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
      };
      long most = 0;
      for (long i = 1; i < n; ++i)
        if (apart(i) > apart(most)) most = i;
      some.insert(most);
    }
    return {some.begin(), some.end()};
  }

  void compare(loaded_program& p, std::size_t w) {
    gradient_check::of_tensor t;
    t.tensor = std::string(given_[asked_[w]].label.view());
    t.elements = static_cast<long>(whole_[w].size());
    const std::vector<long> places = to_try(w);
    const loss_along along(p, asked_[w], whole_[w], out_.loss);
    std::vector<double> slopes;
    for (const long i : places) {
      slopes.push_back(along.slope(i));
      t.largest = std::max(t.largest, std::abs(slopes.back()));
    }
    t.tried = static_cast<long>(places.size());
    const double bound = along.bound(t.largest);
    t.worst.bound = bound;
    double most = -1;
    for (std::size_t k = 0; k < places.size(); ++k) {
      bool kink = false;
      for (std::size_t plan = 0; plan < derived_.size() && !kink; ++plan) {
        const gradient_check::entry e{
            {}, out_.plans[plan], derived_[plan][w][static_cast<std::size_t>(places[k])], slopes[k], bound};
        if (!e.holds() && along.at_kink(places[k], e.derived, bound)) {
          kink = true;
        } else if (e.apart() > most) {
          most = e.apart();
          t.worst = e;
          t.worst.place = place_of(given_[asked_[w]], places[k]);
        }
      }
      t.left_out += kink;
    }
    out_.tensors.push_back(std::move(t));
  }

  static std::vector<std::pair<std::string, long>> place_of(const value& v, long element) {
    std::vector<std::pair<std::string, long>> out;
    for (int d = v.rank() - 1; d >= 0; --d) {
      out.emplace_back(std::string(v.dims[d].view()), element % v.shape[d]);
      element /= v.shape[d];
    }
    return {out.rbegin(), out.rend()};
  }

  const gradient_options& o_;
  const graph& given_;
  graph forward_;
  mesh_shape one_{};
  std::vector<int> asked_{};                                 // tensors whose gradients are compared
  std::vector<std::vector<double>> whole_{};                 // what each holds
  std::vector<std::vector<std::vector<double>>> derived_{};  // by plan, then tensor
  mutable std::optional<shared_batches> batches_{};
  std::mt19937_64 random_{o_.seed};
  gradient_check out_{};
};

}  // namespace detail

CFP_INLINE gradient_check check_gradients(const graph& forward, const gradient_options& options) {
  return detail::gradient_checker(forward, options).run();
}

}  // namespace cfp
