// What is owed: the collectives between two partitions of one tensor, and those that splitting a factor of an operator
// brings with it.
#pragma once

#include <cfp/core/ask.hpp>

namespace cfp::inline v0_1 {

/// One collective along one mesh axis.
struct owed_collective {
  collective_kind kind = collective_kind::all_reduce;
  name axis;
  long bytes = 0;  ///< sent by each device; 0 where sizes are left to run time
  friend constexpr bool operator==(const owed_collective&, const owed_collective&) = default;
};

/// The collectives of a conversion, in order.
struct communication {
  list<owed_collective, 12> collectives;
  long bytes = 0;  ///< sent by each device; 0 where sizes are left to run time

  constexpr bool none() const { return collectives.empty(); }
  constexpr int count(collective_kind kind) const {
    int n = 0;
    for (const owed_collective& c : collectives) n += c.kind == kind;
    return n;
  }
};

constexpr communication communication_of(const conversion& c, const partition& from, const extents& shape, bool sized,
                                         long element_bytes, const mesh_shape& mesh) {
  communication out;
  partition p = from;
  for (const conversion_step& s : c.steps) {
    if (s.communicates()) {
      const long bytes = sized ? bytes_sent(s, p, elements(shape) * element_bytes, mesh) : 0;
      out.collectives.push({s.collective(), mesh.axes[s.axis].label, bytes});
      out.bytes += bytes;
    }
    p = after(p, s);
  }
  return out;
}

namespace detail {

template <class From, class To>
consteval bool require_conversion() {
  constexpr bool one_tensor = From::dims_type::value == To::dims_type::value && From::mesh_type::shape == To::mesh_type::shape;
  return partition_can_be_converted<one_tensor, "a tensor can only be converted to the same dimensions on the same mesh">::require();
}

template <class From, class To, long ElementBytes>
struct owing {
  static_assert(require_conversion<From, To>());
  static constexpr communication answer = [] {
    extents shape = From::dims_type::value.sizes;  // where a size is left to run time, any that divides does
    for (long& e : shape)
      if (e == 0) e = From::mesh_type::shape.devices();
    const conversion c = convert(From::held, To::held, shape, ElementBytes, From::mesh_type::shape);
    if (!c.possible) throw "cfp: no collectives lead from one of these partitions to the other: nothing makes parts of a maximum or minimum";
    return communication_of(c, From::held, shape, From::sized, ElementBytes, From::mesh_type::shape);
  }();
};

template <class T>
struct completed {
  static constexpr text<255> placement = [] {
    partition p = T::held;
    for (partition::debt& d : p.partial) d = {};
    return describe(p, T::dims_type::value.parts, T::mesh_type::shape);
  }();
  using type = partitioned<typename T::dims_type, typename T::mesh_type, shorten<placement.count>(placement)>;
};

}  // namespace detail

/// `T` with its partial sums completed.
template <class T>
using complete_t = typename detail::completed<T>::type;

/// The collectives that turn one partition of a tensor into another: the cheapest there are.
template <class From, class To = complete_t<From>, long ElementBytes = 4>
inline constexpr communication owed = detail::owing<From, To, ElementBytes>::answer;

/// What a factor of an operator is to a split.
enum class factor_kind : std::uint8_t {
  parallel,   ///< free: every result is split the same way
  reduction,  ///< results are parts of a sum, a maximum or a minimum: an all-reduce completes them
  one_hot,    ///< positions of a table: results are parts of a sum with one summand
  whole,      ///< must be gathered first
  halo,       ///< neighbours exchange their borders first
  scan,       ///< each device hands a carry to the next
};

/// One way to split an operator over a mesh axis, and what that owes.
struct factor_strategy {
  name factor;
  factor_kind kind = factor_kind::parallel;
  name window;                             ///< halo: the factor that says how far it reaches
  reduction combine = reduction::sum;      ///< reduction: of what the results are parts
  friend constexpr bool operator==(const factor_strategy&, const factor_strategy&) = default;

  constexpr bool free() const { return kind == factor_kind::parallel; }
};

/// Every factor of a rule, and what splitting it owes: the strategies of an operator follow from its rule alone.
constexpr list<factor_strategy, max_factors> strategies_of(const rule& r) {
  list<factor_strategy, max_factors> out;
  for (int f = 0; f < r.factors.size(); ++f) {
    const factor& x = r.factors[f];
    factor_strategy s{x.label, factor_kind::parallel, {}, reduction::sum};
    if (x.whole) s.kind = factor_kind::whole;
    else if (x.scan) s.kind = factor_kind::scan;
    else if (x.window >= 0) s.kind = factor_kind::halo, s.window = r.factors[x.window].label;
    else if (!r.is_parallel(f)) s.kind = x.one_hot ? factor_kind::one_hot : factor_kind::reduction, s.combine = r.combine;
    out.push(s);
  }
  return out;
}

template <auto Op>
inline constexpr list<factor_strategy, max_factors> strategies = strategies_of(parse(Op.rule_source));

/// Names of dimensions that a chain of operators carries.
template <lit... Dim>
struct carried {
  template <class Chain>
  static constexpr bool by = (Chain::carries(Dim.view()) && ...);
};

namespace detail {

// Follows dimensions of the first operand through a chain, each operator taking the last result as its first operand:
// each must be a factor that every operator splits freely.
template <class Dims, auto... Op>
struct chain {
  static constexpr bool carries(std::string_view label) {
    dimensions at = Dims::value;
    int part = at.find(label);
    bool free = part >= 0;
    const auto pass = [&](std::string_view source) {
      if (!free) return;
      // The other operands are free to follow: any dimensions that fit will do.
      list<int, max_operands> ranks;
      ranks.push(at.written());
      const rule r = parse(source, outline(source).ellipsis(ranks));
      list<dimensions, max_operands> shapes;
      list<partition, max_operands> held;
      for (int i = 0; i < r.operands.size(); ++i) {
        dimensions d = at;
        if (i > 0) {
          d = {};
          for (int k = 0; k < r.operands[i].factors.size(); ++k) d.push(r.factors[r.operands[i].factors[k]].label, 0, r.operands[i].group[k]);
        }
        shapes.push(d);
        held.push(partition::replicated(d.rank()));
      }
      list<operand_view, max_operands> views;
      for (int i = 0; i < r.operands.size(); ++i) views.push({&shapes[i], &held[i]});
      const binding b = bind(r, views);
      if (b.problem) {
        free = false;
        return;
      }
      int f = -1;
      for (int k = 0; k < b.r.operands[0].factors.size() && f < 0; ++k)
        if (b.given_part[0][k] == part) f = b.r.operands[0].factors[k];
      free = f >= 0 && b.r.is_parallel(f);
      if (!free) return;
      part = b.r.results[0].dim_of(f);
      at = result_dimensions(b, 0);
      for (long& e : at.sizes) e = 0;
      for (std::string_view& l : at.parts)  // a name of this rule outlives it in the rule's text
        if (const std::size_t from = source.find(l); from != std::string_view::npos) l = source.substr(from, l.size());
    };
    (pass(Op.rule_source), ...);
    return free;
  }
};

}  // namespace detail

/// Whether a chain of operators, the result of each the first operand of the next, is one parallel block for these
/// dimensions of its input: a split of any of them crosses the whole chain without communication.
template <class Dims, class Carried, auto... Op>
inline constexpr bool parallel_block = Carried::template by<detail::chain<Dims, Op...>>;

}  // namespace cfp
