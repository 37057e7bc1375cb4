// Blocks and segments of GPT are those the theory expects, whatever the depth and the order of writing.
#include "../catch.hpp"

#include "read_config.hpp"

#include <cfp/block/segments.hpp>
#include <cfp/block/strategy.hpp>
#include <cfp/runtime/lower.hpp>

#include <numeric>
#include <random>

using namespace cfp;

namespace {

gpt_config sized(long layers) {
  gpt_config c = read_gpt(config_file("gpt2"));
  c.layers = layers;
  return c;
}

// "entry => body" by the labels of operators.
std::string words(const graph& g, const block_structure& s, const block& b) {
  std::string out;
  for (int e : b.entries) {
    for (int o : s.parts[static_cast<std::size_t>(e)].forward) out.append(g.at(o).op->label).append(1, ' ');
    out += "=> ";
  }
  for (int o : s.parts[static_cast<std::size_t>(b.body)].forward) out.append(g.at(o).op->label).append(1, ' ');
  out.pop_back();
  return out;
}

// The same graph written in another order.
graph reordered(const graph& g, std::mt19937& random) {
  graph out = g;
  out.operations.clear();
  std::vector<bool> done(g.operations.size());
  for (std::size_t n = 0; n < g.operations.size(); ++n) {
    std::vector<int> ready;
    for (int i = 0; i < g.size(); ++i) {
      bool can = !done[static_cast<std::size_t>(i)];
      for (int v : g.at(i).operands) can = can && (g[v].producer < 0 || done[static_cast<std::size_t>(g[v].producer)]);
      if (can) ready.push_back(i);
    }
    const int next = ready[random() % ready.size()];
    done[static_cast<std::size_t>(next)] = true;
    operation o = g.at(next);
    const int id = out.size();
    for (int r : o.results) out[r].producer = id;
    out.operations.push_back(o);
  }
  return out;
}

std::set<std::set<std::string>> as_sets(const graph& g, const block_structure& s) {
  std::set<std::set<std::string>> out;
  for (const part& p : s.parts) {
    std::set<std::string> names;
    for (int o : p.forward) names.insert(std::string(g[g.at(o).results[0]].label.view()));
    out.insert(names);
  }
  return out;
}

}  // namespace

TEST_CASE("the blocks of GPT are those expected") {
  const graph g = differentiate(refine(gpt(sized(3))));
  const block_structure s = parallel_blocks(g);
  std::vector<std::string> expected{"lookup lookup add_rows"};
  for (int l = 0; l < 3; ++l) {
    expected.push_back("norm_sum norm_square layer_norm => linear bias split_qkv scores masked_max masked_sum "
                       "masked_softmax weighted_sum merge_heads");
    expected.push_back("linear bias add");
    expected.push_back("norm_sum norm_square layer_norm => linear bias gelu");
    expected.push_back("linear bias add");
  }
  expected.push_back("norm_sum norm_square layer_norm => dense");
  expected.push_back("logits_max logits_sum cross_entropy");
  std::vector<std::string> found;
  for (const block& b : s.blocks) found.push_back(words(g, s, b));
  CHECK(found == expected);
}

TEST_CASE("unique blocks and segments do not depend on depth") {
  for (long layers : {3, 12, 48}) {
    const graph g = differentiate(refine(gpt(sized(layers))));
    const block_structure s = parallel_blocks(g);
    const segmentation seg = segments(g, s);
    CHECK(s.blocks.size() == static_cast<std::size_t>(4 * layers + 3));
    CHECK(seg.unique_blocks == 7);
    CHECK(seg.unique == 4);
    CHECK(seg.segments.size() == static_cast<std::size_t>(layers + 3));
  }
}

TEST_CASE("a layer of another size is not merged") {
  gpt_config c = sized(3);
  c.width = 96;
  const graph a = differentiate(refine(gpt(c)));
  c.width = 192;
  const graph b = differentiate(refine(gpt(c)));
  CHECK(fingerprint(a, parallel_blocks(a).parts[2].operations) != fingerprint(b, parallel_blocks(b).parts[2].operations));
}

TEST_CASE("every operator is in exactly one part, and blocks are convex") {
  const graph g = differentiate(refine(gpt(sized(3))));
  const block_structure s = parallel_blocks(g);
  std::vector<int> times(g.operations.size());
  for (const part& p : s.parts)
    for (int o : p.operations) ++times[static_cast<std::size_t>(o)];
  for (int i = 0; i < g.size(); ++i) CHECK(times[static_cast<std::size_t>(i)] == (g.at(i).hub >= 0 && s.part_of[static_cast<std::size_t>(i)] < 0 ? 0 : 1));
  const wiring w = wire(g, [&](int i) { return g.at(i).when == phase::forward; });
  const auto above = ancestors(w);
  for (const part& p : s.parts)
    for (int outside = 0; outside < g.size(); ++outside) {
      if (g.at(outside).when != phase::forward || s.part_of[static_cast<std::size_t>(outside)] == s.part_of[static_cast<std::size_t>(p.forward[0])]) continue;
      bool after_one = false, before_one = false;
      for (int o : p.forward) {
        after_one = after_one || above[static_cast<std::size_t>(outside)].test(static_cast<std::size_t>(o));
        before_one = before_one || above[static_cast<std::size_t>(o)].test(static_cast<std::size_t>(outside));
      }
      CHECK_FALSE((after_one && before_one));
    }
}

TEST_CASE("blocks do not depend on the order in which the graph was written") {
  const graph g = refine(gpt(sized(3)));
  const auto expected = as_sets(g, parallel_blocks(g));
  std::mt19937 random(4);
  for (int r = 0; r < 30; ++r) {
    const graph other = reordered(g, random);
    CHECK(as_sets(other, parallel_blocks(other)) == expected);
  }
}

TEST_CASE("inside a block no split of a carried dimension communicates, forward") {
  const graph g = differentiate(refine(gpt(sized(1))));
  const block_structure s = parallel_blocks(g);
  mesh_shape mesh;
  mesh.axes.push({name("data"), 2});
  int checked = 0;
  for (const part& p : s.parts) {
    const strategy_space space(g, p, mesh);
    for (const strategy& st : space.all) {
      const int c = st[0].split;
      if (c < 0 || !space.classes()[c].parallel) continue;
      sharding plan = sharding::replicated(g);
      space.assign(st, plan.assigned);
      CHECK(count_collectives(lower(g, mesh, plan, p.forward, 4), g, 4).total_bytes() == 0);
      ++checked;
    }
  }
  CHECK(checked > 15);
}
