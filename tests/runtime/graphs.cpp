// Graphs from files: rules that are derived, structure and plans equal to those of a model that is written by hand,
// gradients, files that are none.
#include "../catch.hpp"
#include "../onnx_writer.hpp"

#include <cfp/backend/host/elementary_kernels.hpp>
#include <cfp/block/parallel_blocks.hpp>
#include <cfp/block/segments.hpp>
#include <cfp/core/spell.hpp>
#include <cfp/graphs/graph_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/loss.hpp>
#include <cfp/op/all.hpp>
#include <cfp/plan/machine_search.hpp>
#include <cfp/profile/machine/roofline.hpp>
#include <cfp/session/check_gradients.hpp>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace graphs_tests {

using namespace cfp;
using namespace onnx_tests;
using graphs::read_graph;

namespace {

read_graph read(const std::string& bytes, const graphs::graph_options& o = {}) {
  return graphs::onnx_graph(bytes, "model.onnx", o);
}
graphs::graph_options sized(const block_sizes& s) {
  graphs::graph_options o;
  o.batch = s.batch, o.sequence = s.sequence;
  return o;
}

// A node on inputs of numbers x, y, ...: the operators it becomes, the stand-in loss left out.
struct input_of {
  std::vector<dim> dims;
  int type = f32;
};
read_graph one_node(const std::string& op, const std::vector<input_of>& in, const std::vector<attribute>& with,
                    const std::vector<std::vector<std::int64_t>>& integers = {},
                    const std::vector<dim>& declared = {}) {
  model_writer m;
  std::vector<std::string> operands;
  const char* const names[] = {"x", "y", "z", "u"};
  for (const input_of& x : in) operands.push_back(m.input(names[operands.size()], x.type, x.dims));
  // A weight, so that there is something to train.
  operands[0] = in[0].type == f32 ? m.node("Mul", {operands[0], m.weight("w", {1})}) : operands[0];
  for (const std::vector<std::int64_t>& all : integers)
    operands.push_back(m.integers("c" + std::to_string(operands.size()), {static_cast<std::int64_t>(all.size())}, all));
  const std::string out = m.node(op, operands, with);
  m.output(out, f32, declared);
  return read(m.bytes());
}
std::string rules(const read_graph& r) {
  std::string out;
  for (const operation& o : r.forward.operations) {
    const std::string label(r.forward[o.results[0]].label.view());
    if (label.starts_with("Mul_1") || (label.starts_with("loss") && o.op->body == op_body::product)) continue;
    out += (out.empty() ? "" : " | ") + std::string(o.op->label) + " " + std::string(spell(o.r).view());
  }
  return out;
}

// The same model as `transformer_block`, in operators of the catalogue.
graph by_hand(const block_sizes& s) {
  model net;
  const dimension batch{"batch", s.batch}, sequence{"sequence", s.sequence}, width{"width", s.width};
  const tensor tokens = net.input("tokens", {batch, sequence}, element::index, {0, 0, s.vocabulary});
  const tensor targets = net.input("targets", {batch, sequence}, element::index, {0, 0, s.vocabulary});
  const double per = 1 / static_cast<double>(s.width);
  const auto norm = [&](tensor x, const std::string& name) {
    const tensor sum = norm_sum(x), square = norm_square(x, sum, per);
    const tensor weight = net.weight(name + ".weight", {width}, {1});
    return layer_norm(x, sum, square, weight, net.weight(name + ".bias", {width}, {}), per, 1e-5);
  };
  const auto projected = [&](tensor x, const std::string& name, dimension in, dimension out) {
    const tensor y = linear(x, net.weight(name + ".weight", {in, out}, {0, 0.1}));
    return bias(y, net.weight(name + ".bias", {out}, {}));
  };
  tensor x = lookup(net.weight("words", {{"vocabulary", s.vocabulary}, width}, {0, 0.1}), tokens);
  for (long l = 0; l < s.layers; ++l) {
    const std::string p = "h." + std::to_string(l) + ".";
    const tensor y = norm(x, p + "ln_1");
    const auto part = [&](const char* name) {
      return split_heads(projected(y, p + name, width, {"heads", s.width}), size_of{"heads", s.heads});
    };
    const tensor q = part("q"), k = part("k"), v = part("v"), score = scores(q, k);
    const tensor max = masked_max(score, 0.5, everywhere), sum = masked_sum(score, max, 0.5, everywhere);
    const tensor together = merge_heads(weighted_sum(masked_softmax(score, max, sum, 0.5, everywhere), v));
    x = add(x, projected(together, p + "proj", {"heads", s.width}, width));
    const tensor up = projected(norm(x, p + "ln_2"), p + "up", width, {"hidden", s.hidden});
    x = add(x, projected(gelu(up), p + "down", {"hidden", s.hidden}, width));
  }
  const tensor logits =
      linear(norm(x, "ln_f"), net.weight("head.weight", {width, {"vocabulary", s.vocabulary}}, {0, 0.1}));
  net.recorded.loss = mean_cross_entropy(logits, targets).id;
  return net.recorded;
}

// What planning finds: blocks, segments, strategies, and the best plan on a machine with slow links.
struct structure {
  std::size_t operators = 0, blocks = 0, segments = 0;
  long strategies = 0;
  std::vector<std::size_t> parts;  // operators of each
  collective_count sent;
  double ms = 0;
};
structure structure_of(const graph& forward) {
  const graph g = differentiate(refine(forward));
  const block_structure b = parallel_blocks(g);
  mesh_shape mesh;
  mesh.axes.push({name("model"), 4});
  const decision_graph d = decisions(g, b, mesh, axis_choice::scattered);
  structure out;
  out.operators = g.operations.size();
  out.blocks = b.blocks.size();
  out.segments = segments(g, b).segments.size();
  for (const part& p : b.parts) out.parts.push_back(p.operations.size());
  for (const decision& n : d.nodes) out.strategies += n.kind == decision::strategy_of_part ? n.choices() : 0;
  const solution s = solve(roofline(g, mesh, d, plain_machine(mesh, 1e14, 2e12, 5e-6, {{1e-5, 1e10}})).build());
  REQUIRE(s.feasible);
  out.sent = count_collectives(realise("found", g, mesh, d, s.choices).code, g);
  out.ms = s.time;
  return out;
}

std::string refused(const std::string& bytes, const graphs::graph_options& o = {}) {
  try {
    read(bytes, o);
  } catch (const bad_input& e) {
    return e.what();
  }
  return "nothing is refused";
}

}  // namespace

TEST_CASE("a transformer block of an ONNX file is planned as one that is written by hand") {
  for (const block_sizes& s :
       {block_sizes{2, 2, 64, 4096, 16, 16384, 2048}, block_sizes{4, 8, 32, 512, 8, 2048, 1024}}) {
    const structure file = structure_of(read(transformer_block(s, false, true), sized(s)).forward);
    const structure hand = structure_of(by_hand(s));
    CHECK(file.operators == hand.operators);
    CHECK(file.blocks == hand.blocks);
    CHECK(file.segments == hand.segments);
    CHECK(file.parts == hand.parts);
    CHECK(file.strategies == hand.strategies);
    CHECK(file.sent.calls == hand.sent.calls);
    CHECK(file.sent.total_bytes() == hand.sent.total_bytes());
    CHECK(file.ms == Approx(hand.ms).epsilon(1e-9));
  }
}

TEST_CASE("small batches on a wide ONNX block: columns, then rows, and nothing sent inside") {
  const block_sizes s{2, 2, 64, 4096, 16, 16384, 2048};
  const structure found = structure_of(read(transformer_block(s, false, true), sized(s)).forward);
  // Megatron's: of each layer two all-reduces forward and two backward, of batch * sequence * width numbers each. And
  // of the head, split by words, a number for each row: the maximum, the sum, and the target's logit each all-reduced,
  // a gather and a scatter.
  const long rows = s.batch * s.sequence;
  CHECK(found.sent.calls == decltype(found.sent.calls){4 * s.layers + 3, 1, 1, 0, 0});
  CHECK(found.sent.total_bytes() == (s.layers * 8 * rows * s.width + 3 * 2 * rows + 2 * rows) * 3 / 4 * 4);
}

TEST_CASE("rules follow from shapes") {
  struct expected {
    std::string op;
    std::vector<input_of> in;
    std::vector<attribute> with;
    std::vector<std::vector<std::int64_t>> integers;
    std::string rules;
  };
  const std::vector<expected> all = {
      {"MatMul", {{{2, 3, 4}}, {{4, 5}}}, {}, {}, "einsum batch d3 batch_2, batch_2 d5 -> batch d3 d5"},
      {"MatMul",
       {{{2, 3, 4, 5}}, {{3, 5, 6}}},
       {},
       {},
       "einsum batch batch_2 d4 d5, batch_2 d5 d6 -> batch batch_2 d4 d6"},
      {"Gemm",
       {{{4, 2}}, {{5, 4}}},
       {{"transA", 1l}, {"transB", 1l}},
       {},
       "einsum batch d2, batch_2 batch -> d2 batch_2"},
      {"Einsum", {{{2, 3}}, {{4, 3}}}, {{"equation", "ab,cb->ca"}}, {}, "einsum batch d3, batch_2 d3 -> batch_2 batch"},
      {"Add", {{{2, 3, 4}}, {{3, 1}}}, {}, {}, "add batch batch_2 d4, batch_2 -> batch batch_2 d4"},
      {"Reshape", {{{2, 12, 5}}}, {}, {{2, 3, 4, 5}}, "rearrange batch (d3 d4) d5 -> batch d3 d4 d5"},
      {"Reshape", {{{2, 12}}}, {}, {{8, 3}}, "rearrange batch (d4 d3) -> (batch d4) d3"},
      {"Transpose",
       {{{2, 3, 4}}},
       {{"perm", std::vector<std::int64_t>{2, 0, 1}}},
       {},
       "rearrange batch d3 d4 -> d4 batch d3"},
      {"ReduceSum", {{{2, 3, 4}}}, {{"keepdims", 0l}}, {{1}}, "rearrange batch d3 d4 -> batch d4"},
      {"ReduceMax", {{{2, 3, 4}}}, {{"keepdims", 0l}}, {{2}}, "largest dim0 dim1 k -> dim0 dim1; whole k; max k"},
      {"Softmax",
       {{{2, 3, 4}}},
       {},
       {},
       "logits_max dim0 dim1 vocabulary -> dim0 dim1; max vocabulary | logits_sum dim0 dim1 vocabulary, dim0 dim1 -> "
       "dim0 dim1 | softmax dim0 dim1 vocabulary, dim0 dim1, dim0 dim1 -> dim0 dim1 vocabulary"},
      {"Concat", {{{2, 3}}, {{2, 5}}}, {{"axis", 1l}}, {}, "join batch d3, batch d5 -> batch d8; whole d3 d5 d8"},
      {"Slice", {{{2, 9}}}, {}, {{1}, {3}, {1}}, "piece batch d9 -> batch d2; whole d9 d2"},
      {"Slice", {{{2, 9}}}, {}, {{3}, {6}, {1}}, "unstack batch (part d3) -> batch d3, batch d3, batch d3; whole part"},
      {"Gather",
       {{{7, 3}}, {{2, 4}, i64}},
       {},
       {},
       "lookup batch d3, batch_2 sequence -> batch_2 sequence d3; onehot batch"},
      {"Conv",
       {{{2, 3, 8}}, {{5, 3, 2}}},
       {},
       {},
       "Conv batch d3 d8, batch_2 d3 d2 -> batch batch_2 d7; whole d8 d2 d7"},
      {"Abs", {{{2, 3}}}, {}, {}, "Abs batch d3 -> batch d3"},
      {"Expand", {{{2, 1}}}, {}, {{2, 3}}, "einsum batch, d3 -> batch d3"},
      {"Identity", {{{2, 3}}}, {}, {}, ""}};
  for (const expected& e : all) {
    INFO(e.op);
    CHECK(rules(one_node(e.op, e.in, e.with, e.integers)) == e.rules);
  }
  CHECK(rules(one_node("Mystery", {{{2, 3}}}, {}, {}, {4, 5})) == "Mystery d2 d3 -> d4 d5; whole d2 d3 d4 d5");
  CHECK(rules(one_node("Reshape", {{{6, 4}}}, {}, {{4, 6}})) == "Reshape d6 d4 -> d4_2 d6_2; whole d6 d4 d4_2 d6_2");
}

TEST_CASE("equal operators of files are one object, and equal layers one segment") {
  const block_sizes two{2}, four{4};
  const graph a = read(transformer_block(two), sized(two)).forward,
              b = read(transformer_block(four), sized(four)).forward;
  const auto operators = [](const graph& g) {
    std::set<const op_info*> out;
    for (const operation& o : g.operations) out.insert(o.op);
    return out;
  };
  CHECK(operators(a) == operators(b));
  const auto unique = [](const graph& forward) {
    const graph g = differentiate(refine(forward));
    return segments(g, parallel_blocks(g)).unique;
  };
  CHECK(unique(a) == unique(b));
}

TEST_CASE("what exporters take apart is found again") {
  const auto labels = [](const graph& g) {
    std::string out;
    for (const operation& o : g.operations) out += std::string(o.op->label) + " ";
    return out;
  };
  const block_sizes s{1};
  const graph causal_graph = read(transformer_block(s, true), sized(s)).forward;
  for (const operation& o : causal_graph.operations)
    if (o.op == &info<masked_softmax_t>) {
      CHECK(o.scalars[0] == 0.5);
      CHECK(o.scalars[1] == causal);
    }
  CHECK_THAT(labels(causal_graph), !Catch::Contains("chosen") && !Catch::Contains("scaled"));
  model_writer m;
  const std::string x = m.node("Mul", {m.input("x", f32, {4, 8}), m.weight("w", {8})});
  const auto c = [&m](float v) { return m.number("", v); };
  const std::string gaussian = m.node(
      "Mul", {m.node("Mul", {x, m.node("Add", {m.node("Erf", {m.node("Div", {x, c(1.41421356f)})}), c(1)})}), c(0.5f)});
  const std::string less =
      m.node("Sub", {gaussian, m.node("ReduceMean", {gaussian}, {{"axes", std::vector<std::int64_t>{-1}}})});
  const std::string square =
      m.node("ReduceMean", {m.node("Pow", {less, c(2)})}, {{"axes", std::vector<std::int64_t>{-1}}});
  const std::string normal = m.node("Div", {less, m.node("Sqrt", {m.node("Add", {square, c(1e-5f)})})});
  m.output(m.node("Add", {m.node("Mul", {normal, m.weight("g", {8})}), m.weight("b", {8})}), f32, {4, 8});
  const graph g = read(m.bytes()).forward;
  CHECK(labels(g) == "mul gelu_exact norm_sum norm_square layer_norm einsum ");
}

TEST_CASE("gradients of what is read are those of its loss, on one rank and on two under random plans") {
  const auto holds = [](const read_graph& r, int plans) {
    gradient_options o;
    o.mesh = "data=2";
    o.plans = plans;
    o.elements = 4;
    o.kernels = elementary_kernels();
    if (!r.fixed.empty()) o.data = [fixed = r.fixed](long) { return fixed; };
    const gradient_check c = check_gradients(r.forward, o);
    INFO(c.json());
    CHECK(c.holds());
  };
  block_sizes s;
  s.layers = 1;
  holds(read(transformer_block(s), sized(s)), 2);
  // Every operator that has kernels and is in no transformer.
  const std::vector<std::pair<std::string, std::function<std::string(model_writer&, const std::string&)>>> chains = {
      {"functions",
       [](model_writer& m, const std::string& x) {
         const std::string y = m.node("Exp", {m.node("Tanh", {x})});
         const std::string z = m.node("Log", {m.node("Add", {m.node("Sqrt", {y}), m.node("Sigmoid", {x})})});
         return m.node("Sub", {m.node("Mul", {z, m.node("Sin", {x})}), m.node("Div", {m.node("Cos", {x}), y})});
       }},
      {"rows",
       [](model_writer& m, const std::string& x) {
         const std::string top = m.node("ReduceMax", {x}, {{"axes", std::vector<std::int64_t>{1}}});
         return m.node("Add",
                       {m.node("LogSoftmax", {x}),
                        m.node("Mul", {top, m.node("ReduceMean", {x}, {{"axes", std::vector<std::int64_t>{0}}})})});
       }},
      {"pieces",
       [](model_writer& m, const std::string& x) {
         m.node("Split", {x}, {{"axis", 1l}, {"num_outputs", 2l}}, {"left", "right"});
         const std::string y = m.node("Concat", {m.node("Mul", {"right", "right"}), "left", "left"}, {{"axis", 1l}});
         return m.node("Transpose", {m.node("Reshape", {y, m.integers("to", {3}, {2, 2, 12})})},
                       {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
       }},
      {"masks", [](model_writer& m, const std::string& x) {
         m.tensor("mask", truth, {4, 1}, std::string("\1\0\0\1", 4));
         return m.node("Where", {"mask", m.node("Max", {x, m.node("Neg", {x})}),
                                 m.node("Min", {x, m.node("Pow", {x, m.number("three", 3)})})});
       }}};
  for (const auto& [called, chain] : chains) {
    INFO(called);
    model_writer m;
    const std::string x = m.node("Mul", {m.input("x", f32, {4, 8}), m.weight("w", {4, 8}, 0.9f)});
    m.output(chain(m, x), f32, {});
    const read_graph r = read(m.bytes());
    gradient_options o;
    o.mesh = "data=2";
    o.plans = 3;
    o.elements = 6;
    o.kernels = elementary_kernels();
    if (!r.fixed.empty())
      o.data = [&r](long) {
        batch all = r.fixed;
        for (const value& v : r.forward.values) {
          if (v.role != value_role::input || all.count(std::string(v.label.view())) > 0) continue;
          std::vector<float> numbers;
          for (long i = 0; i < elements(v.shape); ++i)
            numbers.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i))));
          all[std::string(v.label.view())] = numbers;
        }
        return all;
      };
    const gradient_check c = check_gradients(r.forward, o);
    INFO(c.json());
    CHECK(c.holds());
  }
}

TEST_CASE("what nobody has a kernel for is planned, and named where it should run") {
  const read_graph r = one_node("Conv", {{{2, 3, 8}}, {{4, 3, 2}}}, {});
  CHECK(differentiate(refine(r.forward)).size() > r.forward.size());
  gradient_options o;
  o.kernels = elementary_kernels();
  CHECK_THROWS_WITH(check_gradients(r.forward, o), Catch::Contains("'Conv'"));
}

TEST_CASE("a file that is no graph is refused by node, attribute and value") {
  const std::string whole = transformer_block(block_sizes{1});
  CHECK_THAT(refused(whole),
             Catch::Contains("input 'tokens': only you know the size of 'batch'; give --dim batch=SIZE"));
  CHECK_THAT(refused(whole.substr(0, whole.size() / 2)), Catch::StartsWith("model.onnx: it is cut off"));
  CHECK_THAT(refused("no graph"), Catch::StartsWith("model.onnx: "));
  CHECK_THAT(refused(""), Catch::Contains("there is no graph with nodes in it"));
  const auto broken = [](const std::function<void(model_writer&)>& write) {
    model_writer m;
    m.node("Mul", {m.input("x", f32, {4, 8}), m.weight("w", {8})}, {}, {"y"});
    write(m);
    m.output("z", f32, {});
    return refused(m.bytes());
  };
  using with = std::vector<attribute>;
  const std::pair<const char*, std::function<void(model_writer&)>> wrong[] = {
      {"model.onnx: node 1 'Add_2' (Add): its operand 'gone' is no input, and made by no node before it",
       [](model_writer& m) {
         m.node("Add", {"y", "gone"}, {}, {"z"});
       }},
      {"its operand 'z' is no input, and made by no node before it",
       [](model_writer& m) {
         m.node("Add", {"y", "z"}, {}, {"z"});
       }},
      {"its result 'y' is made twice",
       [](model_writer& m) { m.node("Neg", {"y"}, {}, {"y"}), m.node("Neg", {"y"}, {}, {"z"}); }},
      {"(MatMul): its operands [4 8], [4] do not fit: 8 and 4 elements are multiplied",
       [](model_writer& m) {
         m.node("MatMul", {"y", m.weight("v", {4})}, {}, {"z"});
       }},
      {"its shape [5 -1] does not fit [4 8]",
       [](model_writer& m) {
         m.node("Reshape", {"y", m.integers("s", {2}, {5, -1})}, {}, {"z"});
       }},
      {"its shape [-1 -1] leaves two sizes open",
       [](model_writer& m) {
         m.node("Reshape", {"y", m.integers("s", {2}, {-1, -1})}, {}, {"z"});
       }},
      {"attribute 'perm' is [1 1], its operand [4 8]",
       [](model_writer& m) {
         m.node("Transpose", {"y"}, with{{"perm", std::vector<std::int64_t>{1, 1}}}, {"z"});
       }},
      {"axis 7 of a tensor that has 2",
       [](model_writer& m) {
         m.node("Softmax", {"y"}, with{{"axis", 7l}}, {"z"});
       }},
      {"nobody here knows this operator, and the file does not say the shape of its result 'z2'",
       [](model_writer& m) { m.node("Mystery", {"y"}, {}, {"z2"}), m.node("Neg", {"z2"}, {}, {"z"}); }},
      {"initializer 'v': it has 3 elements, its sizes say 4",
       [](model_writer& m) {
         m.tensor("v", f32, {4}, std::string(12, 'a')), m.node("Mul", {"y", "v"}, {}, {"z"});
       }},
      {"initializer 'v': its sizes are negative or more than memory can hold",
       [](model_writer& m) {
         m.tensor("v", f32, {1ll << 40, 1ll << 40}, "aaaa");
       }},
      {"initializer 'v': its sizes are negative or more than memory can hold",
       [](model_writer& m) { m.tensor("v", f32, {-4}, "aaaa"); }},
      {"initializer 'v': its elements are of type 8 of TensorProto.DataType, which is not read",
       [](model_writer& m) { m.tensor("v", 8, {1}, "aaaa"); }},
      {"initializer 'w': there are two of this name", [](model_writer& m) { m.weight("w", {2}); }},
      {"input 'big': its shape is [4611686018427387904 4611686018427387904]",
       [](model_writer& m) {
         m.input("big", f32, {1l << 62, 1l << 62});
       }},
      {"model.onnx: output 'z' is made by no node", [](model_writer&) {}}};
  for (const auto& [why, write] : wrong) {
    INFO(why);
    CHECK_THAT(broken(write), Catch::Contains(why));
  }
}

}  // namespace graphs_tests
