// Laws of rules and of completion, over many generated cases.
#include "../catch.hpp"

#include <cfp/core/ask.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/model/complete.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/program/layer.hpp>

#include "gated_layer.hpp"

#include <algorithm>
#include <numeric>
#include <random>

namespace rules_tests {

using namespace cfp;

namespace {

rule random_rule(std::mt19937& random) {
  rule r;
  const int factors = 1 + static_cast<int>(random() % 6);
  for (int f = 0; f < factors; ++f) {
    factor x;
    x.label = name(std::string(1, static_cast<char>('a' + f)) + (random() % 4 == 0 ? ".1" : ""));
    r.factors.push(x);
  }
  const auto some = [&](bool all) {
    pattern p;
    std::vector<int> order(static_cast<std::size_t>(factors));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int group = -1;
    for (int f : order) {
      if (!all && random() % 2) continue;
      if (group < 0 || random() % 3) ++group;
      p.factors.push(static_cast<signed char>(f));
      p.group.push(static_cast<signed char>(group));
    }
    return p;
  };
  r.operands.push(some(true));
  for (int n = static_cast<int>(random() % 3); n > 0; --n) r.operands.push(some(false));
  for (int n = 1 + static_cast<int>(random() % 2); n > 0; --n) r.results.push(some(false));
  for (factor& f : r.factors) {
    f.whole = random() % 5 == 0;
    f.scan = random() % 7 == 0;
  }
  if (factors > 1 && random() % 3 == 0) r.factors[0].window = 1;
  if (random() % 3 == 0) r.coordinates.push(0);
  bool reduces = false;
  for (int f = 0; f < factors; ++f) reduces = reduces || r.is_reduction(f);
  if (reduces && random() % 3 == 0) r.combine = random() % 2 ? reduction::max : reduction::min;
  return r;
}

// Factors are numbered as the text names them first: the same rule but for that order.
bool same_rule(const rule& a, const rule& b) {
  if (a.operands.size() != b.operands.size() || a.results.size() != b.results.size() || a.combine != b.combine)
    return false;
  std::vector<int> to(static_cast<std::size_t>(a.factors.size()), -1);
  const auto same_pattern = [&](const pattern& p, const pattern& q) {
    if (!(p.group == q.group) || p.factors.size() != q.factors.size()) return false;
    for (int i = 0; i < p.factors.size(); ++i) {
      int& t = to[static_cast<std::size_t>(p.factors[i])];
      if (t < 0) t = q.factors[i];
      if (t != q.factors[i]) return false;
    }
    return true;
  };
  for (int i = 0; i < a.operands.size(); ++i)
    if (!same_pattern(a.operands[i], b.operands[i])) return false;
  for (int i = 0; i < a.results.size(); ++i)
    if (!same_pattern(a.results[i], b.results[i])) return false;
  for (int f = 0; f < a.factors.size(); ++f) {
    const int t = to[static_cast<std::size_t>(f)];
    if (t < 0) continue;
    const factor &x = a.factors[f], &y = b.factors[t];
    if (x.whole != y.whole || x.scan != y.scan || x.one_hot != y.one_hot || (x.window < 0) != (y.window < 0))
      return false;
    if (x.window >= 0 && to[static_cast<std::size_t>(x.window)] != y.window) return false;
  }
  return a.coordinates.size() == b.coordinates.size();
}

// The same graph with its operations in another order in which they can run, and its values renumbered.
graph reordered(const graph& g, std::mt19937& random, std::vector<int>& value_to) {
  std::vector<int> order;
  std::vector<char> done(g.operations.size()), ready(g.values.size());
  for (int v = 0; v < g.value_count(); ++v) ready[static_cast<std::size_t>(v)] = g[v].producer < 0;
  while (order.size() < g.operations.size()) {
    std::vector<int> next;
    for (int i = 0; i < g.size(); ++i) {
      bool can = !done[static_cast<std::size_t>(i)];
      for (int v : g.at(i).operands) can = can && ready[static_cast<std::size_t>(v)];
      if (can) next.push_back(i);
    }
    const int i = next[random() % next.size()];
    done[static_cast<std::size_t>(i)] = 1;
    for (int v : g.at(i).results) ready[static_cast<std::size_t>(v)] = 1;
    order.push_back(i);
  }
  value_to.assign(g.values.size(), 0);
  std::iota(value_to.begin(), value_to.end(), 0);
  std::shuffle(value_to.begin(), value_to.end(), random);
  graph out;
  out.values.resize(g.values.size());
  for (int v = 0; v < g.value_count(); ++v) {
    out[value_to[static_cast<std::size_t>(v)]] = g[v];
    out[value_to[static_cast<std::size_t>(v)]].producer = -1;
  }
  for (int i : order) {
    operation o = g.at(i);
    for (int& v : o.operands) v = value_to[static_cast<std::size_t>(v)];
    for (int& v : o.results) v = value_to[static_cast<std::size_t>(v)];
    out.add(o);
  }
  out.loss = value_to[static_cast<std::size_t>(g.loss)];
  return out;
}

mesh_shape two_axes() {
  mesh_shape m;
  m.axes.push({"data", 2});
  m.axes.push({"model", 2});
  return m;
}

// A partition for some tensors at random: one dimension per axis, or none.
std::vector<given_partition> random_gifts(const graph& g, std::mt19937& random) {
  std::vector<given_partition> out;
  for (int v = 0; v < g.value_count(); ++v) {
    if (random() % 3 || g[v].rank() == 0) continue;
    given_partition p{v, partition::replicated(g[v].rank())};
    for (int a = 0; a < 2; ++a) {
      const int d = static_cast<int>(random() % static_cast<unsigned>(g[v].rank() + 1));
      if (d < g[v].rank()) p.held.split(d, a);
    }
    if (divides(p.held, g[v].shape, two_axes())) out.push_back(p);
  }
  return out;
}

}  // namespace

TEST_CASE("a rule is what its text says") {
  std::mt19937 random(1);
  for (int n = 0; n < 3000; ++n) {
    const rule r = random_rule(random);
    const rule_text text = spell(r);
    INFO(text.view());
    const parsed_rule back = read_rule(text.view());
    bool nowhere = false;  // the language has no factor that stands in a result alone, unless whole
    for (const pattern& p : r.results)
      for (signed char f : p.factors) {
        bool known = r.factors[f].whole || r.factors[f].one_hot;
        for (const pattern& o : r.operands) known = known || o.dim_of(f) >= 0;
        nowhere = nowhere || !known;
      }
    if (nowhere) continue;
    REQUIRE(!back.problem);
    CHECK(same_rule(r, back.value));
    const rule_text again = spell(back.value);  // factors now numbered as they are read
    CHECK(spell(parse(again.view())).view() == again.view());
  }
}

TEST_CASE("any text is a rule or is refused at a column of it") {
  std::mt19937 random(2);
  const std::string letters = "ab cd,->();. .. ... whole max halo \t\n\x80";
  for (int n = 0; n < 20000; ++n) {
    std::string s;
    for (std::size_t i = 0, end = random() % 40; i < end; ++i) s += letters[random() % letters.size()];
    if (n % 2) s = "a b, b c -> a c" + s;
    const parsed_rule r = read_rule(s);
    if (!r.problem) continue;
    CHECK(r.problem.column >= 1);
    CHECK(r.problem.column <= static_cast<int>(s.size()) + 1);
  }
}

namespace {

// Constants: what no constant may do (read past an array, overflow) does not compile here.
constexpr text_error ninth_operand() {
  const int ranks[max_operands]{1, 1, 1, 1, 1, 1, 1, 1};
  return read_rule("a, a, a, a, a, a, a, a, a -> a", ranks).problem;
}
constexpr text_error huge_size() {
  dimensions d;
  return detail::read_dimension("batch=99999999999999999999", 0, d);
}
constexpr const char longest[] =
    "(~aaaaaaaaaaaaaaaaaaaaaaa=100000000000000  ~baaaaaaaaaaaaaaaaaaaaaa=100000000000000 "
    "~caaaaaaaaaaaaaaaaaaaaaa=100000000000000 ~daaaaaaaaaaaaaaaaaaaaaa=100000000000000 "
    "~eaaaaaaaaaaaaaaaaaaaaaa=100000000000000 ~faaaaaaaaaaaaaaaaaaaaaa=100000000000000 "
    "~gaaaaaaaaaaaaaaaaaaaaaa=100000000000000 ~haaaaaaaaaaaaaaaaaaaaaa=100000000000000)";

}  // namespace

TEST_CASE("texts at their bounds are read or refused, in constants too") {
  constexpr text_error operands = ninth_operand();
  CHECK(std::string(operands.what) == "an operator has at most 8 operands");
  constexpr text_error size = huge_size();
  CHECK(std::string(size.what) == "expected a size of at least 1 after '='");
  CHECK(std::string(detail::canonical_text<longest>().view()).find("  ") == std::string::npos);
  CHECK(detail::canonical_text<longest>().size() == std::size(longest) - 2);

  const dimensions d = detail::read_dimensions({{"batch", "seq"}, 2});
  CHECK_THROWS_WITH(detail::read_placement("batch:data seq:data", d, two_axes()), "a placement names an axis twice");
  CHECK_THROWS_WITH(detail::read_placement("partial:data batch:data", d, two_axes()),
                    "a placement names an axis twice");
  CHECK_THROWS_WITH(detail::read_placement("partial:data partial_max:data", d, two_axes()),
                    "a placement names an axis twice");
}

TEST_CASE("completion does not depend on the order of writing") {
  model net;
  net.recorded.loss = small_model<32>(net).id;
  const graph g = refine(net.recorded);
  const mesh_shape mesh = two_axes();
  std::mt19937 random(3);
  int completed = 0, refused = 0;
  for (int n = 0; n < 3000; ++n) {
    std::vector<given_partition> given = random_gifts(g, random);
    if (n % 2) given.resize(std::min<std::size_t>(given.size(), 2));
    const completion one = complete(g, mesh, given);
    std::vector<int> value_to;
    const graph other = reordered(g, random, value_to);
    std::vector<given_partition> moved = given;
    for (given_partition& p : moved) p.value = value_to[static_cast<std::size_t>(p.value)];
    std::shuffle(moved.begin(), moved.end(), random);
    const completion two = complete(other, mesh, moved);
    CHECK((one.problem == completion::nothing) == (two.problem == completion::nothing));
    (one.problem == completion::nothing ? completed : refused)++;
    if (one.problem != completion::nothing) continue;
    for (int i = 0; i < g.size(); ++i) {
      const int result = value_to[static_cast<std::size_t>(g.at(i).results[0])];
      CHECK(one.plan.assigned[static_cast<std::size_t>(i)] ==
            two.plan.assigned[static_cast<std::size_t>(other[result].producer)]);
    }
  }
  CHECK(completed > 300);
  CHECK(refused > 300);
}

TEST_CASE("two readers that ask for a tensor differently are heard alike, whichever is written first") {
  for (const bool turned : {false, true}) {
    model net;
    const tensor x = net.activation("x", {{"batch", 4}, {"sequence", 8}});
    const tensor v = net.called("v", gelu(x));
    const char* const labels[] = {"a", "b"};
    for (const int i : {0, 1}) net.called(labels[turned ? 1 - i : i], gelu(v));
    const graph g = refine(net.recorded);
    mesh_shape mesh;
    mesh.axes.push({"data", 2});
    std::vector<given_partition> given;
    for (const int d : {0, 1}) {
      given_partition p{g.find(labels[d]), partition::replicated(2)};
      p.held.split(d, 0);
      given.push_back(p);
    }
    const completion c = complete(g, mesh, given);
    REQUIRE(c.problem == completion::nothing);
    const auto split_of = [&](const char* label) {
      const operation& o = g.at(g[g.find(label)].producer);
      const int f = c.plan.assigned[static_cast<std::size_t>(g[g.find(label)].producer)].factor[0];
      return f < 0 ? -1 : o.r.results[0].dim_of(f);
    };
    CHECK(split_of("v") == -1);
    CHECK(split_of("a") == 0);
    CHECK(split_of("b") == 1);
  }
}

namespace {

// Partitions at random; half of them follow one choice per axis, so that many fit.
partition random_partition(const pattern& p, const mesh_shape& mesh, const int (&wish)[max_axes],
                           std::mt19937& random) {
  partition out = partition::replicated(p.factors.size());
  for (int a = 0; a < mesh.rank(); ++a) {
    const int kind = static_cast<int>(random() % 12);
    if (kind == 0) out.partial[a] = {true, random() % 4 ? reduction::sum : reduction::max};
    else if (kind == 1 && p.factors.size() > 0)
      out.split(static_cast<int>(random() % static_cast<unsigned>(p.factors.size())), a);
    else if (kind > 2 && wish[a] == assignment::partial) out.partial[a] = {true, reduction::sum};
    else if (kind > 2 && wish[a] >= 0 && p.dim_of(wish[a]) >= 0) out.split(p.dim_of(wish[a]), a);
  }
  return out;
}

}  // namespace

TEST_CASE("the quick answer is the general one") {
  std::mt19937 random(5);
  const mesh_shape meshes[] = {two_axes(), [] {
                                 mesh_shape m;
                                 m.axes.push({"data", 2});
                                 return m;
                               }()};
  int plain = 0, free = 0;
  for (int n = 0; n < 30000; ++n) {
    rule r = random_rule(random);
    for (factor& f : r.factors) f.window = -1;
    for (pattern* p : {&r.operands[0], r.operands.size() > 1 ? &r.operands[1] : nullptr,
                       r.operands.size() > 2 ? &r.operands[2] : nullptr})
      for (int k = 0; p != nullptr && k < p->factors.size(); ++k) p->group[k] = static_cast<signed char>(k);
    const mesh_shape& mesh = meshes[n % 2];
    int wish[max_axes];
    for (int& w : wish) w = static_cast<int>(random() % static_cast<unsigned>(r.factors.size() + 2)) - 2;
    std::vector<dimensions> shapes;
    std::vector<partition> held;
    rule_outline o;
    for (const pattern& p : r.operands) {
      dimensions d;
      for (int k = 0; k < p.factors.size(); ++k)
        d.push(r.factors[p.factors[k]].label.view(),
               random() % 8 == 0    ? 0
               : random() % 50 == 0 ? 40
                                    : 8 * (1 + p.factors[k]),
               k);
      shapes.push_back(d);
      held.push_back(random_partition(p, mesh, wish, random));
      o.written.push(static_cast<signed char>(p.factors.size()));
      o.dots.push(false);
    }
    list<operand_view, max_operands> views;
    list<const mesh_shape*, max_operands> over;
    for (std::size_t i = 0; i < shapes.size(); ++i) views.push({&shapes[i], &held[i]}), over.push(&mesh);
    const linearity lin = static_cast<linearity>(random() % 3);
    const operator_view op{"any", "a -> a", lin};
    const detail::verdict quick = detail::judge_quickly(op, o, r, views, over),
                          general = detail::judge(op, o, r, views, over);
    plain += detail::plain(r, views);
    free += quick.free();
    CHECK(quick.free() == general.free());
    CHECK(quick.clash == general.clash);
    CHECK(quick.binding == general.binding);
  }
  CHECK(plain == 30000);
  CHECK(free > 3000);
}

namespace {

template <int Depth>
constexpr tensor tower(model& net) {
  const dimension batch{"batch", 8}, width{"width", 16}, hidden{"hidden", 64};
  tensor x = net.activation("x", {batch, width});
  for (int i = 0; i < Depth; ++i)
    x = linear(linear(x, net.weight("up.weight", {width, hidden}, {})), net.weight("down.weight", {hidden, width}, {}));
  return net.called("y", x);
}

}  // namespace

TEST_CASE("a layer with more collectives than one constant holds says so") {
  using line = cfp::mesh<cfp::axis<"model", 4>>;
  using of_x = given<"x", split<"batch", "model">>;  // every weight owes a reduction
  CHECK(detail::plan_layer<tower<32>, line, 4, of_x>().gradients.size() == 64);
  const layer_report r = detail::plan_layer<tower<33>, line, 4, of_x>();
  CHECK(r.problem == layer_report::too_long);
  CHECK(r.gradients.over == 2);
}

}  // namespace rules_tests
