// Compiling is passing: a model traced, differentiated and lowered by the compiler. Column-then-row split: one
// all-reduce of an activation forward, one backward.
#include <cfp/model/differentiate.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/softmax.hpp>
#include <cfp/program/lower.hpp>

using namespace cfp;

namespace {

struct traced {
  graph g;
  int up = -1, down = -1;  // forward operations
};

constexpr traced mlp() {
  model net;
  dimension batch{"batch", 4}, width{"width", 8}, hidden{"hidden", 16};
  const tensor tokens = net.input("tokens", {batch}, element::index, {0, 0, 8});
  const tensor table = net.weight("table.weight", {{"vocabulary", 8}, width}, {0, 1});
  const tensor x = lookup(table, tokens);
  const tensor h = gelu(linear(x, net.weight("up.weight", {width, hidden}, {0, 1})));
  const tensor y = linear(h, net.weight("down.weight", {hidden, width}, {0, 1}));
  const tensor max = logits_max(y), sum = logits_sum(y, max);
  net.recorded.loss = cross_entropy(y, tokens, max, sum, 0.25).id;
  traced t{differentiate(refine(net.recorded))};
  for (int i = 0; i < t.g.size(); ++i) {
    if (t.g.at(i).when != phase::forward || t.g.at(i).op != &info<linear_t>) continue;
    (t.up < 0 ? t.up : t.down) = i;
  }
  return t;
}

// Splits a factor of a forward operation, and of everything that comes from it.
constexpr void split(const graph& g, sharding& plan, int forward, std::string_view factor) {
  for (int i = 0; i < g.size(); ++i)
    if (i == forward || g.at(i).origin == forward)
      plan.assigned[static_cast<std::size_t>(i)].factor[0] = static_cast<signed char>(g.at(i).r.find(factor));
}

constexpr collective_count collectives(bool rows_first) {
  const traced t = mlp();
  mesh_shape mesh;
  mesh.axes.push({"model", 2});
  sharding plan = sharding::replicated(t.g);
  split(t.g, plan, t.up, rows_first ? "in" : "out");
  split(t.g, plan, t.up + 1, "..1");  // gelu, of the hidden dimension
  split(t.g, plan, t.down, rows_first ? "out" : "in");
  for (int i = 0; i < t.g.size(); ++i)  // weights rest as they are used
    if (t.g.at(i).when == phase::update) {
      const auto weight = t.g[t.g.at(i).hub].label.view();
      if (weight == "up.weight") plan.assigned[static_cast<std::size_t>(i)].factor[0] = rows_first ? 0 : 1;
      if (weight == "down.weight") plan.assigned[static_cast<std::size_t>(i)].factor[0] = rows_first ? 1 : 0;
    }
  return count_collectives(lower(t.g, mesh, plan, all_operations(t.g), 4), t.g);
}

constexpr collective_count column_row = collectives(false);
static_assert(column_row.calls[0] == 2 && column_row.total_bytes() == 2 * (2 * 1 * 4 * 8 * 4 / 2));
static_assert(column_row.calls[1] + column_row.calls[2] + column_row.calls[3] == 0);
// Row first must reduce before the activation, and gather after: more is sent.
static_assert(collectives(true).total_bytes() > column_row.total_bytes());

}  // namespace
