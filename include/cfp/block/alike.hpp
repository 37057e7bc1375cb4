// Which groups of operations compute the same, in whatever order they were written: a hash that does not depend on
// order finds candidates, an isomorphism (VF2, Boost.Graph) confirms them.
#pragma once

#include <cfp/block/fingerprint.hpp>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// An operation of a group, and what it is there: only those of one place are alike.
struct placed_operation {
  int operation = 0, place = 0;
};

class alike_groups {
 public:
  explicit alike_groups(const graph& g) : g_(g) {}

  /// The number of a group's kind: the same for groups that are isomorphic in operators, rules, sizes, scalars, types
  /// of tensors and wiring, from 0.
  int kind(const std::vector<placed_operation>& group) {
    const auto [written, fresh] = by_text_.try_emplace(text(group), kinds_);
    if (!fresh) return written->second;
    net now = net_of(group);
    const std::uint64_t hash = refine(now);
    for (auto [at, end] = by_hash_.equal_range(hash); at != end; ++at)
      if (isomorphic(at->second.first, now)) return written->second = at->second.second;
    by_hash_.emplace(hash, std::pair(std::move(now), kinds_));
    return kinds_++;
  }

  int kinds() const { return kinds_; }

 private:
  struct node {
    std::uint64_t what = 0;       // equal numbers are alike
    std::uint64_t around = what;  // a hash of it and of what is around it
  };
  struct wire {
    std::uint64_t what = 0;
  };
  using net = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, node, wire>;

  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
    return a * 0xff51afd7ed558ccdULL;
  }
  static std::uint64_t mixed_all(std::uint64_t with, std::vector<std::uint64_t> some) {
    std::sort(some.begin(), some.end());
    for (const std::uint64_t s : some) with = mixed(with, s);
    return with;
  }
  std::uint64_t number(const std::string& what) { return numbers_.try_emplace(what, numbers_.size()).first->second; }

  std::size_t vertex(net& n, const std::string& what) {
    const std::size_t at = boost::add_vertex(n);
    n[at].what = n[at].around = number(what);
    return at;
  }

  // As written, which tells most at once.
  std::string text(const std::vector<placed_operation>& group) const {
    std::vector<int> operations;
    std::string out;
    for (const placed_operation& o : group) {
      operations.push_back(o.operation);
      out += std::to_string(o.place) + ' ';
    }
    return out + fingerprint(g_, operations);
  }

  static std::string words(const std::vector<signed char>& numbers) {
    std::string out;
    for (const signed char n : numbers) out += ' ' + std::to_string(n);
    return out;
  }

  // Operations and tensors are vertices; edges say which operand or result a tensor is, and by which factors.
  net net_of(const std::vector<placed_operation>& group) {
    net out;
    std::map<int, std::size_t> tensors;
    const auto tensor = [&](int v) {
      const auto [at, fresh] = tensors.try_emplace(v, 0);
      if (fresh) {
        const value& x = g_[v];
        at->second = vertex(out, "tensor " + std::to_string(static_cast<int>(x.type)) + ' ' +
                                     std::to_string(static_cast<int>(x.role)) + ' ' +
                                     std::to_string(x.type == element::index ? x.fill.bound : 0));
      }
      return at->second;
    };
    const auto use = [&](const char* as, int k, const pattern& p) {
      const std::vector<signed char> factors(p.factors.begin(), p.factors.end());
      return wire{number(as + std::to_string(k) + words(factors))};
    };
    for (const placed_operation& placed : group) {
      const operation& o = g_.at(placed.operation);
      std::string what =
          std::to_string(placed.place) + ' ' + std::string(o.op->label).append(template_arguments(*o.op));
      for (const long s : o.sizes) what += ' ' + std::to_string(s);
      for (const double s : o.scalars) what += ' ' + std::to_string(s);
      const std::size_t at = vertex(out, what);
      for (int k = 0; k < o.operands.size(); ++k)
        boost::add_edge(tensor(o.operands[k]), at, use("operand ", k, o.r.operands[k]), out);
      for (int k = 0; k < o.results.size(); ++k)
        boost::add_edge(at, tensor(o.results[k]), use("result ", k, o.r.results[k]), out);
    }
    return out;
  }

  // Hashes what is a few steps around each vertex, which isomorphisms keep; returns a hash of all.
  static std::uint64_t refine(net& n) {
    constexpr int steps = 4;
    for (int step = 0; step < steps; ++step) {
      std::vector<std::uint64_t> next;
      for (auto [v, end] = boost::vertices(n); v != end; ++v) {
        std::vector<std::uint64_t> near;
        for (auto [e, last] = boost::out_edges(*v, n); e != last; ++e)
          near.push_back(mixed(mixed(1, n[*e].what), n[boost::target(*e, n)].around));
        for (auto [e, last] = boost::in_edges(*v, n); e != last; ++e)
          near.push_back(mixed(mixed(2, n[*e].what), n[boost::source(*e, n)].around));
        next.push_back(mixed_all(n[*v].around, std::move(near)));
      }
      for (auto [v, end] = boost::vertices(n); v != end; ++v) n[*v].around = next[*v];
    }
    std::vector<std::uint64_t> all;
    for (auto [v, end] = boost::vertices(n); v != end; ++v) all.push_back(n[*v].around);
    return mixed_all(all.size(), std::move(all));
  }

  static bool isomorphic(const net& a, const net& b) {
    const auto enough = [](const auto&, const auto&) { return false; };  // one is
    const auto vertices = [&](auto x, auto y) { return a[x].what == b[y].what && a[x].around == b[y].around; };
    const auto edges = [&](auto x, auto y) { return a[x].what == b[y].what; };
    return boost::num_vertices(a) == boost::num_vertices(b) && boost::num_edges(a) == boost::num_edges(b) &&
           boost::vf2_graph_iso(a, b, enough, boost::get(boost::vertex_index, a), boost::get(boost::vertex_index, b),
                                boost::vertex_order_by_mult(a), edges, vertices);
  }

  const graph& g_;
  int kinds_ = 0;
  std::map<std::string, std::uint64_t> numbers_;
  std::map<std::string, int> by_text_;
  std::multimap<std::uint64_t, std::pair<net, int>> by_hash_;
};

}  // namespace cfp
