// A model whose operations run for one slice of a sequence after another (TeraPipe, arXiv 2102.07988): each slice sees
// itself and those before it. It computes what the model computes, and a stage of a pipeline becomes as many as there
// are slices.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/model/slice_roles.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/op/pieces.hpp>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

struct sliced_graph {
  graph g;
  std::vector<int> first;  ///< forward operations that stages but the first begin with: of a stage of the model all
                           ///< its slices in turn
};

namespace detail {

class slicer {
 public:
  slicer(const graph& from, const std::vector<int>& cuts, std::string_view dimension, const std::vector<long>& lengths)
      : from_(refine(from)), cuts_(cuts), lengths_(lengths), roles_(from_, dimension), pieces_(from_.values.size()),
        whole_(from_.values.size(), -1) {
    ends_.push_back(0);
    for (const long n : lengths) {
      if (n < 1 || n > most_positions)
        throw bad_input("a slice has " + std::to_string(n) + " positions: each has from 1 to " +
                        std::to_string(most_positions));
      ends_.push_back(ends_.back() + n);
    }
    check(dimension);
  }

  sliced_graph run() {
    for (int v = 0; v < from_.value_count(); ++v)
      if (from_[v].producer < 0) whole_[at(v)] = out_.g.add(from_[v]);
    for (stage_ = 0; stage_ <= static_cast<int>(cuts_.size()); ++stage_)
      for (slice_ = 0; slice_ < slices(); ++slice_) {
        const int begin = out_.g.size(), end = end_of(stage_);
        for (int o = end_of(stage_ - 1); o < end; ++o) take(o);
        if (out_.g.size() == begin)
          throw bad_input("stage " + std::to_string(stage_) + " does nothing with slice " + std::to_string(slice_) +
                          ": it must have an operation that reads slices");
        if (begin > 0) out_.first.push_back(begin);
      }
    out_.g.loss = whole_[at(from_.loss)];
    out_.g.passes = from_.passes, out_.g.gradients = from_.gradients;
    return std::move(out_);
  }

 private:
  static constexpr long most_positions = 1l << 31;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int slices() const { return static_cast<int>(lengths_.size()); }
  long begin() const { return ends_[at(slice_)]; }
  long length() const { return lengths_[at(slice_)]; }
  int end_of(int stage) const {
    return stage < 0 ? 0 : stage < static_cast<int>(cuts_.size()) ? cuts_[at(stage)] : from_.size();
  }

  void check(std::string_view dimension) const {
    for (std::size_t k = 0; k < cuts_.size(); ++k)
      if (cuts_[k] <= (k == 0 ? 0 : cuts_[k - 1]) || cuts_[k] >= from_.size())
        throw bad_input("stage " + std::to_string(k + 1) + " begins with operation " + std::to_string(cuts_[k]) +
                        ": stages begin with forward operations, each after the one before");
    bool any = false;
    for (int v = 0; v < from_.value_count(); ++v)
      if (const int d = roles_.dimension_of(v); d >= 0) {
        any = true;
        if (from_[v].shape[d] != ends_.back())
          throw bad_input(std::to_string(slices()) + " slices of '" + std::string(dimension) + "' have " +
                          std::to_string(ends_.back()) + " positions together, the model " +
                          std::to_string(from_[v].shape[d]));
      }
    if (from_.loss < 0 || from_[from_.loss].rank() > 0)
      throw bad_input("a model in slices ends in one number, its loss, and this one does not");
    if (!any) throw bad_input("no input of the model has a dimension '" + std::string(dimension) + "' to be sliced");
  }

  // An operation, for the slice that is now.
  void take(int id) {
    const operation& o = from_.at(id);
    const int rows = roles_.rows(o), keys = roles_.keys(o);
    times_ = o.times;
    if (rows < 0) {
      bool waits = false;
      for (const int v : o.operands) waits = waits || roles_.is_late(v);
      if (slice_ == (waits ? slices() - 1 : 0)) once(id);
      return;
    }
    operation made = o;
    made.operands = {}, made.results = {};
    made.slice_of = id;
    begin_at_nothing(made);
    restrict(made, rows, begin(), length(), ends_.back());
    if (keys >= 0) restrict(made, keys, 0, begin() + length(), ends_.back());
    for (int k = 0; k < o.operands.size(); ++k) made.operands.push(operand(o, k, keys));
    for (int k = 0; k < o.results.size(); ++k) made.results.push(out_.g.add(result(o, k, rows, keys)));
    const list<int, max_results> results = made.results;
    out_.g.add(made);
    for (int k = 0; k < o.results.size(); ++k)
      if (o.r.is_reduction(rows)) add_up(o.results[k], results[k]);
      else pieces_[at(o.results[k])].push_back(results[k]);
  }
  void once(int id) {
    operation made = from_.at(id);
    made.slice_of = id;
    for (int k = 0; k < made.operands.size(); ++k) made.operands[k] = whole_[at(made.operands[k])];
    for (int k = 0; k < made.results.size(); ++k)
      made.results[k] = whole_[at(from_.at(id).results[k])] = out_.g.add(from_[from_.at(id).results[k]]);
    out_.g.add(made);
  }
  static void begin_at_nothing(operation& o) {
    for (int f = 0; f < o.sizes.size(); ++f) o.first.push(0), o.whole.push(o.sizes[f]);
  }
  static void restrict(operation& o, int f, long first, long size, long whole) {
    o.first[f] = first, o.sizes[f] = size, o.whole[f] = whole;
  }

  int operand(const operation& o, int k, int keys) {
    const int v = o.operands[k], d = roles_.dimension_of(v);
    if (d < 0) return whole_[at(v)];
    return o.r.operands[k].factors[d] == keys ? so_far(v, d, slice_) : piece(v, d);
  }
  int piece(int v, int d) {
    std::vector<int>& mine = pieces_[at(v)];
    if (from_[v].producer >= 0 || static_cast<int>(mine.size()) > slice_) return mine[at(slice_)];
    value made = from_[v];
    made.of = whole_[at(v)], made.first = begin();
    made.shape[d] = length();
    made.label = label(made, "slice");
    mine.push_back(out_.g.add(made));
    return mine.back();
  }
  // All slices of a value up to one, on this stage.
  int so_far(int v, int d, int slice) {
    if (slice == 0) return piece_of(v, d, 0);
    int& known = joined_[{v, stage_, slice}];
    if (known > 0) return known - 1;
    const int all = joined(so_far(v, d, slice - 1), piece_of(v, d, slice), v, d, slice);
    joined_[{v, stage_, slice}] = all + 1;
    return all;
  }
  int piece_of(int v, int d, int slice) {
    const int now = std::exchange(slice_, slice), out = piece(v, d);
    slice_ = now;
    return out;
  }

  // All slices before one, and that.
  int joined(int before, int next, int v, int d, int slice) {
    operation o;
    o.op = &info<join_t>, o.times = times_;
    value made = from_[v];
    made.role = value_role::activation, made.producer = made.of = -1, made.fill = {};
    made.shape[d] = ends_[at(slice + 1)];
    made.label = label(from_[v], "until");
    pattern all;
    for (int i = 0; i < made.rank(); ++i) {
      all.factors.push(static_cast<signed char>(i)), all.group.push(static_cast<signed char>(i));
      add_factor(o, made.dims[i], i == d, made.shape[i], 0, from_[v].shape[i]);
    }
    for (const auto& [called, x, first] :
         {std::tuple("before", before, 0l), std::tuple("next", next, ends_[at(slice)])}) {
      pattern mine = all;
      mine.factors[d] = static_cast<signed char>(o.r.factors.size());
      add_factor(o, name(called), true, out_.g[x].shape[d], first, from_[v].shape[d]);
      o.r.operands.push(mine), o.operands.push(x);
    }
    o.r.results.push(all);
    const int id = out_.g.add(made);
    o.results.push(id);
    out_.g.add(o);
    return id;
  }
  static void add_factor(operation& o, const name& called, bool whole, long size, long first, long of) {
    factor f;
    f.label = called, f.whole = whole;
    o.r.factors.push(f), o.sizes.push(size), o.first.push(first), o.whole.push(of);
  }

  value result(const operation& o, int k, int rows, int keys) const {
    const int v = o.results[k];
    value made = from_[v];
    made.producer = -1;
    for (int d = 0; d < made.rank(); ++d) {
      if (o.r.results[k].factors[d] == rows) made.shape[d] = length();
      if (o.r.results[k].factors[d] == keys) made.shape[d] = begin() + length();
    }
    if (slices() > 1) made.label = label(made, o.r.is_reduction(rows) ? "part" : "slice");
    return made;
  }
  long_name label(const value& v, std::string_view what) const {
    const std::string suffix = "." + std::string(what) + std::to_string(slice_);
    return named_at<long_name>(v.at, v.label, suffix);
  }

  // What is made of all slices, as they come.
  void add_up(int v, int part) {
    int& sum = whole_[at(v)];
    if (slice_ == 0) {
      sum = part;
      return;
    }
    operation o;
    o.op = &info<add_t>, o.times = times_;
    o.r = parse(add_t::rule_source, from_[v].rank());
    for (const long n : from_[v].shape) o.sizes.push(n);
    o.operands.push(sum), o.operands.push(part);
    value made = from_[v];
    made.producer = -1;
    if (slice_ + 1 < slices()) made.label = label(made, "sum");
    sum = out_.g.add(made);
    o.results.push(sum);
    out_.g.add(o);
  }

  const graph from_;
  const std::vector<int>& cuts_;
  const std::vector<long>& lengths_;
  std::vector<long> ends_;
  const slice_roles roles_;
  std::vector<std::vector<int>> pieces_;               // per value, of each slice
  std::vector<int> whole_;                             // per value that has none
  std::map<std::tuple<int, int, int>, int> joined_{};  // by value, stage and last slice, one more than what it is
  sliced_graph out_{};
  int stage_ = 0, slice_ = 0;
  long times_ = 1;  // of the operation that is taken
};

}  // namespace detail

/// The same model for slices of inputs' `dimension`, of so many positions each, in stages that begin with operations
/// `cuts`; of a graph before it is differentiated, refined or not. Throws bad_input for slices or stages that are none,
/// and shape_error where a position needs what comes after it.
inline sliced_graph in_slices(const graph& forward, const std::vector<int>& cuts, std::string_view dimension,
                              const std::vector<long>& lengths) {
  return detail::slicer(forward, cuts, dimension, lengths).run();
}

}  // namespace cfp
