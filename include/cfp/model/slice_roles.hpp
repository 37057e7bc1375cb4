// What slices of a sequence mean to each operation of a model: along which factor it runs slice by slice, and along
// which it sees all slices so far. A model can be cut into slices where no position needs what comes after it.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/core/shape_error.hpp>
#include <cfp/model/graph.hpp>

#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

class slice_roles {
 public:
  /// Throws shape_error where an operation needs all of `dimension` at once.
  slice_roles(const graph& g, std::string_view dimension)
      : g_(g), dimension_(dimension), sliced_(g.values.size()), keys_(g.values.size()), hidden_(g.values.size()),
        late_(g.values.size()) {
    for (const operation& o : g.operations)
      if (o.when != phase::forward) throw bad_input("slices are of a model before it is differentiated");
    for (int v = 0; v < g.value_count(); ++v) {
      sliced_[at(v)].resize(at(g[v].rank())), keys_[at(v)].resize(at(g[v].rank()));
      for (int d = 0; d < g[v].rank() && g[v].role == value_role::input; ++d)
        sliced_[at(v)][at(d)].set = g[v].dims[d] == dimension;
      if (count(sliced_[at(v)]) > 1) fail(v, std::string("two of its dimensions are called '") + dimension_ + "'");
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (const operation& o : g.operations) changed |= spread(o);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (int o = g.size() - 1; o >= 0; --o) changed |= mark_keys(g.at(o));
      for (const operation& o : g.operations) changed |= mark_keys(o);
    }
    for (const operation& o : g.operations) check(o);
  }

  /// The dimension of a value that has slices, not counting one of keys; -1: it has none.
  int dimension_of(int v) const {
    for (int d = 0; d < g_[v].rank(); ++d)
      if (sliced_[at(v)][at(d)].set && !keys_[at(v)][at(d)].set) return d;
    return -1;
  }
  /// The factor along which an operation runs slice by slice; -1: it runs once.
  int rows(const operation& o) const { return factor_of(o, false); }
  /// The factor along which it sees all slices so far, or -1.
  int keys(const operation& o) const { return factor_of(o, true); }
  /// Whether a value is there only when all slices are.
  bool is_late(int v) const { return late_[at(v)].set; }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  using marks = std::vector<mark>;
  static int count(const marks& m) {
    int n = 0;
    for (const mark& x : m) n += x.set;
    return n;
  }
  [[noreturn]] void fail(int v, const std::string& why) const {
    sentence s;
    say_place(s, g_[v].at);
    say(s, g_[v].label.view(), ": ", why, ", so '", dimension_, "' cannot be cut into slices");
    throw shape_error(s);
  }

  // Slices of what an operation reads are slices of what it makes, and of inputs that it reads along with them.
  bool spread(const operation& o) {
    bool changed = false;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      bool is = false;
      for (int k = 0; k < o.operands.size(); ++k)
        if (const int d = o.r.operands[k].dim_of(f); d >= 0) is = is || sliced_[at(o.operands[k])][at(d)].set;
      if (!is) continue;
      each(o, [&](int v, int d, int of) {
        const bool takes = o.results.find(v) >= 0 || g_[v].role == value_role::input;
        if (of != f || !takes || sliced_[at(v)][at(d)].set) return;
        sliced_[at(v)][at(d)].set = changed = true;
      });
    }
    return changed;
  }

  // Keys are the dimension that masks end, of tensors that have one of queries too.
  bool mark_keys(const operation& o) {
    bool changed = false;
    for (int f = 0; f < o.r.factors.size(); ++f) {
      bool is = masks(o) && o.r.coordinates[1] == f;
      each(o, [&](int v, int d, int of) { is = is || (of == f && keys_[at(v)][at(d)].set); });
      if (!is) continue;
      each(o, [&](int v, int d, int of) {
        if (of != f || count(sliced_[at(v)]) < 2 || keys_[at(v)][at(d)].set) return;
        keys_[at(v)][at(d)].set = changed = true;
      });
    }
    return changed;
  }
  template <class F>
  static void each(const operation& o, F&& f) {
    for (int k = 0; k < o.operands.size(); ++k)
      for (int d = 0; d < o.r.operands[k].factors.size(); ++d) f(o.operands[k], d, o.r.operands[k].factors[d]);
    for (int k = 0; k < o.results.size(); ++k)
      for (int d = 0; d < o.r.results[k].factors.size(); ++d) f(o.results[k], d, o.r.results[k].factors[d]);
  }
  static bool masks(const operation& o) {
    return o.op->reach_scalar >= 0 && o.r.coordinates.size() == 2 && !o.r.cuts_coordinates() &&
           o.scalars[o.op->reach_scalar] <= 0;
  }

  int factor_of(const operation& o, bool of_keys) const {
    int keys = -1, rows = -1;
    each(o, [&](int v, int d, int f) {
      if (keys_[at(v)][at(d)].set) keys = f;
    });
    each(o, [&](int v, int d, int f) {
      if (sliced_[at(v)][at(d)].set && f != keys) rows = f;
    });
    return of_keys ? keys : rows;
  }

  void check(const operation& o) {
    const int rows = this->rows(o), keys = this->keys(o), made = o.results[0];
    each(o, [&](int v, int d, int f) {
      const bool is = sliced_[at(v)][at(d)].set;
      if (is && f != rows && f != keys)
        fail(made, "what is made of " + text(v) +
                       " needs all of it at once, as no mask keeps a position from what comes after it");
      if (!is && rows >= 0 && (f == rows || f == keys))
        fail(made, "it reads the whole of " + text(v) + " along with slices");
    });
    for (const int v : o.operands)
      if (late_[at(v)].set && rows >= 0) fail(made, text(v) + " is of all slices, and slices read it");
    bool waits = false;
    for (const int v : o.operands) waits = waits || late_[at(v)].set;
    if (rows < 0) {
      for (const int v : o.results) late_[at(v)].set = waits;
      return;
    }
    const factor& f = o.r.factors[rows];
    if (o.r.stays_together(rows) || f.one_hot) fail(made, std::string(o.op->label) + " needs all of it at once");
    if (o.r.is_reduction(rows)) {
      if (o.r.combine != reduction::sum) fail(made, std::string(o.op->label) + " takes a maximum or minimum over it");
      for (const int v : o.results) late_[at(v)].set = true;
    }
    if (keys >= 0) check_keys(o, keys);
  }
  // Sums over keys are those over the keys so far, where what comes after them is nothing.
  void check_keys(const operation& o, int keys) {
    bool any = masks(o), all = true;
    for (int k = 0; k < o.operands.size(); ++k)
      if (o.r.operands[k].dim_of(keys) >= 0) {
        const bool hidden = hidden_[at(o.operands[k])].set;
        any = any || (hidden && o.op->linear != linearity::none);
        all = all && hidden;
      }
    if (o.r.is_reduction(keys) && !any)
      fail(o.results[0], std::string(o.op->label) + " sums over what comes after a position");
    const bool nothing =
        masks(o) || (o.op->linear == linearity::each && any) || (o.op->linear == linearity::all && all);
    for (const int v : o.results) hidden_[at(v)].set = nothing;
  }
  std::string text(int v) const { return std::string(g_[v].label.view()); }

  const graph& g_;
  std::string dimension_;
  std::vector<marks> sliced_, keys_;  // per value and dimension
  marks hidden_;                      // per value: nothing stands where keys are after queries
  marks late_;
};

}  // namespace detail

}  // namespace cfp
