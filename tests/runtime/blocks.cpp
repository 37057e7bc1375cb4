// Blocks and segments of the models are those the theory expects, whatever the depth and the order of writing.
#include "../catch.hpp"

#include "../random_graph.hpp"
#include "deep_families.hpp"

#include <cfp/block/decisions.hpp>
#include <cfp/block/segments.hpp>
#include <cfp/program/lower.hpp>

#include <boost/dynamic_bitset.hpp>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/vf2_sub_graph_iso.hpp>

#include <numeric>
#include <random>

namespace blocks_tests {

using namespace cfp;
using namespace cfp::families;
using namespace deep_families;

namespace {

// "entry => body <= tail" by the labels of operators.
std::string words(const graph& g, const block_structure& s, const block& b) {
  std::string out;
  for (int e : b.entries) {
    for (int o : s.parts[static_cast<std::size_t>(e)].forward) out.append(g.at(o).op->label).append(1, ' ');
    out += "=> ";
  }
  for (int o : s.parts[static_cast<std::size_t>(b.body)].forward) out.append(g.at(o).op->label).append(1, ' ');
  for (int t : b.tails) {
    out += "<= ";
    for (int o : s.parts[static_cast<std::size_t>(t)].forward) out.append(g.at(o).op->label).append(1, ' ');
  }
  out.pop_back();
  return out;
}

// Per operation, all operations it depends on.
std::vector<boost::dynamic_bitset<>> ancestors(const wiring& w) {
  std::vector<boost::dynamic_bitset<>> out(boost::num_vertices(w), boost::dynamic_bitset<>(boost::num_vertices(w)));
  for (int v : topological_order(w)) {
    const auto at = static_cast<std::size_t>(v);
    for (auto [e, end] = boost::in_edges(at, w); e != end; ++e) {
      const auto p = boost::source(*e, w);
      out[at] |= out[p];
      out[at].set(p);
    }
  }
  return out;
}

// All of them, and models nobody has written.
struct subject {
  std::string name;
  graph forward;
};
std::vector<subject> all_subjects() {
  std::vector<subject> out;
  for (const family& f : known_families) out.push_back({f.name, f.forward(2 * f.period)});
  std::mt19937 random(19);
  for (int n = 0; n < 200; ++n) out.push_back({"random model " + std::to_string(n), refine(random_graph(random))});
  return out;
}

std::vector<std::string> blocks_in_words(const graph& g) {
  const block_structure s = parallel_blocks(g);
  std::vector<std::string> found;
  for (const block& b : s.blocks) found.push_back(words(g, s, b));
  return found;
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
  const graph g = differentiate(refine(decoder(sized(3))));
  const block_structure s = parallel_blocks(g);
  std::vector<std::string> expected{"lookup lookup add_rows dropout"};
  for (int l = 0; l < 3; ++l) {
    expected.push_back(
        "norm_sum norm_square layer_norm => linear bias split_qkv scores masked_max masked_sum "
        "masked_softmax dropout weighted_sum merge_heads");
    expected.push_back("linear bias dropout add");
    expected.push_back("norm_sum norm_square layer_norm => linear bias gelu");
    expected.push_back("linear bias dropout add");
  }
  expected.push_back("norm_sum norm_square layer_norm => dense");
  expected.push_back("logits_max logits_sum cross_entropy");
  CHECK(blocks_in_words(g) == expected);
}

TEST_CASE("the blocks of LLaMA with grouped heads are those expected") {
  std::vector<std::string> expected{"lookup"};
  for (int l = 0; l < 2; ++l) {
    expected.push_back(
        "rms_square rms_norm => dense dense split_heads dense split_heads rotary split_groups rotary grouped_scores "
        "masked_max "
        "masked_sum masked_softmax grouped_sum merge_groups");
    expected.push_back("dense add");
    expected.push_back("rms_square rms_norm => dense dense gated_silu");
    expected.push_back("dense add");
  }
  expected.push_back("rms_square rms_norm => dense");
  expected.push_back("logits_max logits_sum cross_entropy");
  CHECK(blocks_in_words(llama_of_layers(2)) == expected);
}

TEST_CASE("the blocks of a mixture of experts are those expected") {
  const std::vector<std::string> expected{"lookup",
                                          "rms_square rms_norm => dense dense split_heads dense split_heads rotary "
                                          "split_groups rotary grouped_scores masked_max masked_sum masked_softmax "
                                          "grouped_sum merge_groups",
                                          "dense add",
                                          "rms_square rms_norm",  // read by the gate and by the dispatch
                                          "dense",
                                          "logits_max logits_sum softmax queue_places",
                                          "dispatch => to_experts",
                                          "expert_dense expert_dense gated_silu",
                                          "expert_dense",
                                          "chosen_sum combine => from_experts add",
                                          "gate_mass first_choices imbalance",
                                          "scaled add",
                                          "rms_square rms_norm => dense",
                                          "logits_max logits_sum cross_entropy"};
  CHECK(blocks_in_words(mixtral_of_layers(1)) == expected);
}

TEST_CASE("the blocks of an encoder-decoder are those expected, ten for a pair of layers") {
  const std::string attention = "dense split_heads dense split_heads dense split_heads scores ",
                    weighted = "masked_max masked_sum masked_softmax dropout weighted_sum merge_heads",
                    norm = "rms_square rms_norm => ", last = "rms_square rms_norm dropout => ",
                    self = norm + "lookup " + attention + "add_positions " + weighted;
  std::vector<std::string> expected{"lookup dropout",
                                    "lookup dropout",
                                    self,
                                    "dense dropout add",
                                    norm + "dense relu dropout",
                                    "dense dropout add",
                                    self,
                                    "dense dropout add",
                                    last + norm + attention + weighted,
                                    "dense dropout add",
                                    norm + "dense relu dropout",
                                    "dense dropout add",
                                    last + "dense scaled",
                                    "logits_max logits_sum cross_entropy"};
  std::vector<std::string> found = blocks_in_words(t5_of_layers(1));
  std::sort(expected.begin(), expected.end());
  std::sort(found.begin(), found.end());
  CHECK(found == expected);
}

TEST_CASE("unique blocks and segments do not depend on depth") {
  for (const family& f : known_families) {
    int unique = 0;
    for (long n : {3, 5, 12}) {
      INFO(f.name << ", " << n << " repeated layers");
      const graph g = differentiate(f.forward(n * f.period));
      const block_structure s = parallel_blocks(g);
      const segmentation seg = segments(g, s);
      CHECK(s.blocks.size() == static_cast<std::size_t>(f.blocks * n + f.others));
      CHECK(seg.unique_blocks == f.unique_blocks);
      if (n == 3) unique = seg.unique;
      CHECK(seg.unique == unique);
    }
  }
  for (long layers : {3, 12, 48}) {
    const graph g = differentiate(refine(decoder(sized(layers))));
    const segmentation seg = segments(g, parallel_blocks(g));
    CHECK(seg.unique == 4);
    CHECK(seg.segments.size() == static_cast<std::size_t>(layers + 3));
  }
}

TEST_CASE("blocks and segments that were written in another order are the same") {
  for (const family& f : known_families) {
    INFO(f.name);
    const graph g = f.forward(4 * f.period);
    const int unique = segments(g, parallel_blocks(g)).unique_blocks;
    std::mt19937 random(7);
    for (int r = 0; r < 5; ++r) {
      const graph other = reordered(g, random);
      CHECK(segments(other, parallel_blocks(other)).unique_blocks == unique);
    }
  }
}

TEST_CASE("sizes of public models are those their authors state") {
  const auto billions = [](const graph& g) {
    double n = 0;
    for (const value& v : g.values)
      if (v.role == value_role::weight) n += static_cast<double>(elements(v.shape)) / 1e9;
    return n;
  };
  const auto llama_size = [&](const char* model) { return billions(decoder(read_decoder(carried(model)))); };
  CHECK(llama_size("llama-2-7b") == Approx(6.738).epsilon(1e-3));
  CHECK(llama_size("llama-3-8b") == Approx(8.030).epsilon(1e-3));
  CHECK(llama_size("llama-3-70b") == Approx(70.55).epsilon(1e-3));
  const config_file file = carried("mixtral-8x7b");
  CHECK(billions(decoder(read_decoder(file))) == Approx(46.70).epsilon(1e-3));
  CHECK(billions(t5(read_t5(carried("t5-large")))) == Approx(0.7377).epsilon(1e-3));
  CHECK(billions(decoder(read_decoder(carried("gpt2-xl")))) == Approx(1.558).epsilon(1e-3));
  CHECK(billions(decoder(read_decoder(carried("gpt3-175b")))) == Approx(175.0).epsilon(3e-3));  // arXiv 2005.14165
  for (const auto& [model, size] : std::map<std::string, double>{{"380m", 0.38},
                                                                 {"690m", 0.69},
                                                                 {"1.3b", 1.3},
                                                                 {"2.4b", 2.4},
                                                                 {"7.1b", 7.1},
                                                                 {"10b", 10},
                                                                 {"27b", 27},
                                                                 {"70b", 70}}) {
    const config_file suite = carried("alpa-moe-" + model);
    transformer c = read_decoder(suite);
    c.sequence = 1024;
    CHECK(billions(decoder(c)) == Approx(size).epsilon(0.04));
  }
  for (const auto& [model, size] : std::map<std::string, double>{
           {"350m", 0.35}, {"760m", 0.76}, {"1.3b", 1.3}, {"2.6b", 2.6}, {"6.7b", 6.7}, {"15b", 15}, {"39b", 39}})
    CHECK(billions(decoder(read_decoder(carried("alpa-gpt-" + model)))) == Approx(size).epsilon(0.05));
}

TEST_CASE("a layer of another size is not merged") {
  transformer c = sized(3);
  c.width = 96;
  const graph a = differentiate(refine(decoder(c)));
  c.width = 192;
  const graph b = differentiate(refine(decoder(c)));
  CHECK(fingerprint(a, parallel_blocks(a).parts[2].operations) !=
        fingerprint(b, parallel_blocks(b).parts[2].operations));
}

TEST_CASE("every operator is in exactly one part, and blocks are convex") {
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph g = differentiate(x.forward);
    const block_structure s = parallel_blocks(g);
    std::vector<int> times(g.operations.size());
    for (const part& p : s.parts)
      for (int o : p.operations) ++times[static_cast<std::size_t>(o)];
    for (int i = 0; i < g.size(); ++i)
      CHECK(times[static_cast<std::size_t>(i)] ==
            (g.at(i).hub >= 0 && s.part_of[static_cast<std::size_t>(i)] < 0 ? 0 : 1));
    const wiring w = wire(g, [&](int i) { return g.at(i).when == phase::forward; });
    const auto above = ancestors(w);
    for (const part& p : s.parts)
      for (int outside = 0; outside < g.size(); ++outside) {
        if (g.at(outside).when != phase::forward ||
            s.part_of[static_cast<std::size_t>(outside)] == s.part_of[static_cast<std::size_t>(p.forward[0])])
          continue;
        bool after_one = false, before_one = false;
        for (int o : p.forward) {
          after_one = after_one || above[static_cast<std::size_t>(outside)].test(static_cast<std::size_t>(o));
          before_one = before_one || above[static_cast<std::size_t>(o)].test(static_cast<std::size_t>(outside));
        }
        CHECK_FALSE((after_one && before_one));
      }
  }
}

TEST_CASE("whether an operator depends on a block as it grows is what its ancestors say") {
  std::mt19937 random(23);
  long asked = 0, dependent = 0;
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph& g = x.forward;
    const wiring w = wire(g, [&](int) { return true; });
    const auto above = ancestors(w);
    cfp::detail::growing_blocks grown(g, w);
    std::vector<int> added;
    for (const int c : topological_order(w)) {
      grown.add(c);
      added.push_back(c);
      for (int n = 0; n < 4; ++n) {
        const int o = added[random() % added.size()], b = grown.of(added[random() % added.size()]);
        if (b < 0 || grown.of(o) == b) continue;
        bool expected = false;
        for (const int m : added)
          expected =
              expected || (grown.of(m) == b && above[static_cast<std::size_t>(o)].test(static_cast<std::size_t>(m)));
        CHECK(grown.follows(o, b) == expected);
        ++asked;
        dependent += expected;
      }
    }
  }
  CHECK(dependent > 1000);
  CHECK(asked > dependent + 1000);
}

TEST_CASE("what one of several readers of a tensor leads to is decided apart") {
  model net;
  const dimension batch{"batch", 8}, sequence{"sequence", 64}, width{"width", 64}, hidden{"hidden", 64};
  const tensor x = net.activation("x", {batch, sequence, width});
  const tensor h = linear(x, net.weight("first", {width, hidden}, {}));
  const tensor bent = gelu(gelu(h));
  const tensor back = net.renamed(linear(bent, net.weight("second", {hidden, width}, {})), "width", "hidden");
  const tensor y = add(back, h);
  net.recorded.loss = mean_cross_entropy(linear(y, net.weight("head", {hidden, {"vocabulary", 64}}, {})),
                                         indices(net, "targets", {batch, sequence}, 64))
                          .id;
  CHECK(blocks_in_words(net.recorded)[0] == "linear <= gelu gelu");

  model alone;  // where nothing else reads the tensor, all goes one way
  const tensor z = linear(alone.activation("x", {batch, sequence, width}), alone.weight("first", {width, hidden}, {}));
  const tensor joined = add(gelu(z), z);  // two ways that meet again
  alone.recorded.loss = mean_cross_entropy(linear(joined, alone.weight("head", {hidden, {"vocabulary", 64}}, {})),
                                           indices(alone, "targets", {batch, sequence}, 64))
                            .id;
  CHECK(blocks_in_words(alone.recorded)[0] == "linear gelu add");
}

// The body of a block and its tails as one.
static part with_tails(const block_structure& s, int of) {
  const block& b = s.blocks[static_cast<std::size_t>(of)];
  part whole = s.parts[static_cast<std::size_t>(b.body)];
  for (int t : b.tails)
    for (int o : s.parts[static_cast<std::size_t>(t)].forward) whole.forward.push_back(o);
  std::sort(whole.forward.begin(), whole.forward.end());
  return whole;
}

// An operator that is fed by one block alone, and that every own dimension of it reaches as one parallel factor, is in
// it.
TEST_CASE("blocks are maximal") {
  int outside = 0;
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph& g = x.forward;
    const block_structure s = parallel_blocks(g);
    mesh_shape mesh;
    mesh.axes.push({name("data"), 2});
    for (int c = 0; c < g.size(); ++c) {
      int feeding = -1;
      bool one = true;
      for (int v : g.at(c).operands)
        if (const int from = g[v].producer; from >= 0) {
          const part& p = s.parts[static_cast<std::size_t>(s.part_of[static_cast<std::size_t>(from)])];
          one = one && p.kind != part::entry && (feeding < 0 || feeding == p.block);
          feeding = p.block;
        }
      const part& mine = s.parts[static_cast<std::size_t>(s.part_of[static_cast<std::size_t>(c)])];
      if (feeding < 0 || !one || (mine.kind != part::entry && mine.block == feeding)) continue;
      const part block = with_tails(s, feeding);
      if (block.anchors.empty()) continue;
      const dimension_classes classes(g, block);
      bool all = true;
      for (int anchor : block.anchors)
        for (const std::vector<int>& group : cfp::detail::own_dimensions(g, anchor)) {
          bool passes = false;  // one of the factors of the dimension is enough
          for (int f : group) {
            std::set<int> as;
            for (int d = 0; d < classes.size(); ++d) {
              if (classes.factor_of(anchor, d) != f) continue;
              for (int i = 0; i < g.at(c).operands.size(); ++i) {
                const int from = g[g.at(c).operands[i]].producer;
                const int factor = from < 0 ? -1 : classes.factor_of(from, d);
                const int dim =
                    factor < 0 ? -1 : g.at(from).r.results[g.at(from).results.find(g.at(c).operands[i])].dim_of(factor);
                if (dim >= 0) as.insert(g.at(c).r.operands[i].factors[dim]);
              }
            }
            passes = passes || (as.size() == 1 && g.at(c).r.is_parallel(*as.begin()));
          }
          all = all && passes;
        }
      INFO("operator " << c << " (" << g.at(c).op->label << ") behind "
                       << s.blocks[static_cast<std::size_t>(block.block)].label);
      CHECK_FALSE(all);
      ++outside;
    }
  }
  CHECK(outside > 500);
}

TEST_CASE("blocks do not depend on the order in which the graph was written") {
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph& g = x.forward;
    const auto expected = as_sets(g, parallel_blocks(g));
    std::mt19937 random(4);
    for (int r = 0; r < 10; ++r) {
      const graph other = reordered(g, random);
      CHECK(as_sets(other, parallel_blocks(other)) == expected);
    }
  }
}

TEST_CASE("inside a block no split of a carried dimension communicates, forward") {
  int checked = 0;
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph g = differentiate(x.forward);
    const block_structure s = parallel_blocks(g);
    mesh_shape mesh;
    mesh.axes.push({name("data"), 2});
    for (const part& p : s.parts) {
      const strategy_space space(g, p, mesh);
      for (const strategy& st : space.all) {
        const int c = st[0].split;
        if (c < 0 || !space.classes()[c].parallel) continue;
        sharding plan = sharding::replicated(g);
        space.assign(st, plan.assigned);
        CHECK(count_collectives(lower(g, mesh, plan, p.forward, 4), g).total_bytes() == 0);
        ++checked;
      }
    }
  }
  CHECK(checked > 2000);
}

namespace {

// The operations of a part as a graph: what each computes, and which result of which goes into which operand.
struct labelled {
  struct vertex {
    std::string text;
  };
  struct edge {
    std::string text;
  };
  boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, vertex, edge> net;

  labelled(const graph& g, const std::vector<int>& operations) : net(operations.size()) {
    std::map<int, std::size_t> at;
    for (int o : operations) {
      const operation& op = g.at(o);
      std::string text(op.op->label);
      for (const pattern& p : op.r.operands) {
        text += '|';
        for (signed char f : p.factors) text += std::to_string(f) + ' ';
      }
      for (const pattern& p : op.r.results) {
        text += '>';
        for (signed char f : p.factors) text += std::to_string(f) + ' ';
      }
      for (long n : op.sizes) text += 'x' + std::to_string(n);
      for (double n : op.scalars) text += ',' + std::to_string(n);
      const std::size_t v = at.size();
      at[o] = v;
      net[v].text = text;
    }
    for (int o : operations)
      for (int i = 0; i < g.at(o).operands.size(); ++i) {
        const int from = g[g.at(o).operands[i]].producer;
        if (from >= 0 && at.contains(from))
          boost::add_edge(at[from], at[o],
                          {std::to_string(g.at(from).results.find(g.at(o).operands[i])) + ' ' + std::to_string(i)},
                          net);
      }
  }
};

bool isomorphic(const labelled& a, const labelled& b) {
  const auto vertices = [&](auto x, auto y) { return a.net[x].text == b.net[y].text; };
  const auto edges = [&](auto x, auto y) { return a.net[x].text == b.net[y].text; };
  return boost::vf2_graph_iso(
      a.net, b.net, [](auto, auto) { return false; }, boost::get(boost::vertex_index, a.net),
      boost::get(boost::vertex_index, b.net), boost::vertex_order_by_mult(a.net), edges, vertices);
}

}  // namespace

TEST_CASE("parts of equal fingerprints are isomorphic, of different fingerprints are not") {
  int equal = 0, different = 0;
  for (const family& f : known_families) {
    INFO(f.name);
    const graph g = differentiate(f.forward(3 * f.period));
    std::map<std::string, std::vector<int>> seen;
    for (const part& p : parallel_blocks(g).parts) {
      const std::string print = fingerprint(g, p.operations);
      for (const auto& [other, operations] : seen) {
        if (other == print) ++equal;
        else ++different;
        CHECK(isomorphic(labelled(g, p.operations), labelled(g, operations)) == (other == print));
      }
      seen.try_emplace(print, p.operations);
    }
  }
  CHECK(equal > 60);
  CHECK(different > 300);
}

TEST_CASE("decisions that are alike share their choices, which are those of each alone", "[heavy]") {
  for (const subject& x : all_subjects()) {
    INFO(x.name);
    const graph g = differentiate(x.forward);
    const block_structure s = parallel_blocks(g);
    mesh_shape mesh;
    for (const char* axis : {"data", "model"}) mesh.axes.push({name(axis), 2});
    const decision_graph d = decisions(g, s, mesh);
    for (const decision& n : d.nodes) {
      std::vector<std::string> names;
      if (n.kind == decision::strategy_of_part) {
        const strategy_space space(g, s.parts[static_cast<std::size_t>(n.index)], mesh);
        std::vector<assignment> all(g.operations.size());
        for (const strategy& choice : space.all) {
          space.assign(choice, all);
          bool fits = true;
          std::vector<assignment> mine;
          for (const int o : n.operations) {
            mine.push_back(all[static_cast<std::size_t>(o)]);
            fits = fits && admissible(g.at(o).r, g.at(o).op->linear, g.at(o).sizes, mine.back(), mesh);
          }
          if (!fits) continue;
          CHECK(mine == n.assigned[names.size()]);
          names.push_back(space.text(choice));
        }
        CHECK(names == std::vector<std::string>(n.names.begin(), n.names.end()));
      } else if (n.kind == decision::forms_of_tensor) {  // one of those its readers need, or two
        for (const decision_edge& e : d.edges)
          if (const decision& reader = d.nodes[static_cast<std::size_t>(e.to)];
              &d.nodes[static_cast<std::size_t>(e.from)] == &n)
            for (std::size_t c = 0; c < reader.choices(); ++c) {
              const std::string needed = describe(needed_by(g, reader, c, n.index), g[n.index], mesh);
              if (std::find(names.begin(), names.end(), needed) == names.end()) names.push_back(needed);
            }
        std::vector<std::string> single;
        for (std::size_t c = 0; c < n.choices(); ++c)
          if (n.forms[c].size() == 1) single.push_back(n.names[c]);
        CHECK(names == single);
      }
    }
  }
  // A deeper model has no more of them.
  for (const family& f : known_families) {
    INFO(f.name);
    std::set<std::size_t> unique;
    for (const long periods : {4, 7}) {
      const graph g = differentiate(f.forward(periods * f.period));
      mesh_shape mesh;
      mesh.axes.push({name("data"), 2});
      std::set<const void*> lists;
      const decision_graph d = decisions(g, parallel_blocks(g), mesh);
      for (const decision& n : d.nodes) lists.insert(n.assigned.id());
      CHECK(lists.size() < d.nodes.size());
      unique.insert(lists.size());
    }
    CHECK(unique.size() == 1);
  }
}

}  // namespace blocks_tests
