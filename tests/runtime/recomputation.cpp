// What is computed again for backward in the place of being kept: nothing changes but memory and time, and the search
// chooses it as well as can be.
#include "../catch.hpp"

#include "../from_environment.hpp"
#include "../pareto.hpp"
#include "../random_graph.hpp"
#include "deep_families.hpp"
#include "small.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/plan/mesh_curve.hpp>
#include <cfp/plan/mesh_search.hpp>
#include <cfp/plan/named.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/machine/roofline.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace recomputation_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

int replicated(const decision& d) {
  return static_cast<int>(std::find(d.names.begin(), d.names.end(), "replicated") - d.names.begin());
}

struct planned {
  planned(graph of, const mesh_shape& on, const target& lowered_for, keeping::resting_t on_host = keeping::on_device)
      : g(std::move(of)), mesh(on), blocks(parallel_blocks(g)),
        again(g, blocks, segments(g, blocks), find_saved(g, lowered_for)),
        d(decisions(g, blocks, mesh, axis_choice::regathered, {}, &again, on_host)) {}

  const graph g;
  const mesh_shape mesh;
  const block_structure blocks;
  const recomputation again;
  const decision_graph d;

  // The same choices, with all kept.
  std::vector<int> kept(std::vector<int> choices) const {
    for (std::size_t n = 0; n < choices.size(); ++n) choices[n] %= static_cast<int>(d.nodes[n].kept_all());
    return choices;
  }
};

template <class Config>
Config small(Config c) {
  c.batch = 4, c.sequence = 8;
  return c;
}

graph tiny_graph(const std::string& family) {
  transformer c = tiny_config();
  c.attention_dropout = c.residual_dropout = c.embedding_dropout = 0.1;
  return family == "gpt"     ? refine(decoder(c))
         : family == "llama" ? refine(decoder(small(read_decoder(tiny("llama")))))
         : family == "t5"    ? refine(t5(small(read_t5(tiny("t5")))))
                             : refine(decoder(small(read_decoder(tiny("mixtral")))));
}

// Every choice of every part that differs, or each so many-th; the others choose at random.
void check_trains_alike(const std::string& family, const mesh_shape& mesh, number type, int passes, long every) {
  training how;
  how.micro_batches = passes;
  how.clip = 1;
  const auto on = threads(mesh, type);
  const target& lowered_for = on->lowered_for();
  const planned p(differentiate(tiny_graph(family), how), mesh, lowered_for, keeping::weights_on_host);
  text_layout what;
  if (family == "t5") what = t5_layout(small(read_t5(tiny("t5"))));
  what.positions = p.g.find("positions") >= 0;
  const byte_text text(some_text(), 4, 8, 5, what);
  std::mt19937 random(17);
  const auto one = [&](const std::vector<int>& choices) {
    const plan less = realise("less", p.g, mesh, p.d, choices, lowered_for),
               all = realise("all", p.g, mesh, p.d, p.kept(choices), lowered_for);
    train_options remember;
    remember.keep_changes = true;
    const trained a = train(*on, less.code, p.g, text, 1, 3, remember),
                  b = train(*on, all.code, p.g, text, 1, 3, remember);
    CHECK(a.loss == b.loss);
    CHECK(a.weights == b.weights);
    return std::any_of(less.code.code.begin(), less.code.code.end(),
                       [](const instruction& i) { return i.again || i.kind == instruction::carry; });
  };
  long again = 0, of = 0, count = 0;
  std::set<const void*> seen;
  for (std::size_t n = 0; n < p.d.nodes.size(); ++n) {
    const decision& node = p.d.nodes[n];
    if (node.kept_all() == node.choices() || !seen.insert(node.assigned.id()).second) continue;
    for (std::size_t c = node.kept_all(); c < node.choices(); ++c) {
      if (count++ % every != 0) continue;
      INFO(family << " on " << to_string(mesh) << ": " << node.label << " [" << node.names[c] << "]");
      std::vector<int> choices = p.kept(random_choices(p.d, random));
      choices[n] = static_cast<int>(c);
      again += one(choices), ++of;
    }
  }
  CHECK(10 * again > 9 * of);
  for (long k = how_many(5, 3, 1); k > 0; --k) {
    INFO("all at random, " << k);
    CHECK(one(random_choices(p.d, random)));
  }
}

// Whether a choice keeps what one decision computes because another reads it.
bool kept_by_readers(const decision_graph& d, std::size_t from, const std::vector<int>& choices) {
  return std::any_of(d.remade.begin(), d.remade.end(), [&](const remade_tensor& r) {
    const auto to = static_cast<std::size_t>(r.to);
    return r.from == static_cast<int>(from) && d.nodes[to].keeps_inputs(static_cast<std::size_t>(choices[to]));
  });
}

}  // namespace

TEST_CASE("whatever a part computes again, training is the same to the bit") {
  const long every = from_environment("CFP_EVERY", how_many(17, 61, 400));
  for (const std::string& family : std::vector<std::string>{"gpt", "mixtral", "llama", "t5"}) {
    if (sanitized && family != "gpt") break;
    check_trains_alike(family, mesh_of({2}), number::float32, 1, every);
    check_trains_alike(family, mesh_of({2}), number::bfloat16, 1, 5 * every);
    check_trains_alike(family, mesh_of({2, 2}), number::bfloat16, 2, 11 * every);
  }
}

TEST_CASE("attention stays one kernel, forward and backward, whatever is computed again or carried") {
  const target& on = cuda::catalogue_target(number::bfloat16);
  transformer l = read_decoder(deep_families::carried("llama-3-8b"));
  l.layers = 3, l.batch = 4, l.sequence = 256;
  transformer c = read_decoder(deep_families::carried("gpt2"));
  c.layers = 3, c.batch = 4, c.sequence = c.positions = 256;
  c.attention_dropout = 0;
  for (const graph& forward : {refine(decoder(l)), refine(decoder(c))})
    for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2})}) {
      const planned p(differentiate(forward), mesh, on, keeping::weights_on_host);
      std::vector<int> choices = follow({"tensor", {"heads hidden"}}, p.d, mesh);
      for (std::size_t n = 0; n < choices.size(); ++n)
        if (choices[n] < 0) choices[n] = replicated(p.d.nodes[n]);
      std::size_t most = 0;
      for (const decision& n : p.d.nodes) most = std::max(most, n.choices() / n.kept_all());
      int brought_back = 0;
      for (std::size_t level = 0; level < most; ++level) {
        std::vector<int> now = choices;
        for (std::size_t n = 0; n < now.size(); ++n) {
          const decision& node = p.d.nodes[n];
          now[n] += static_cast<int>(std::min(level, node.choices() / node.kept_all() - 1) * node.kept_all());
        }
        const program code = realise("level", p.g, mesh, p.d, now, on).code;
        int forwards = 0, backwards = 0, again = 0;
        keeping how;        // of attention
        bool kept = false;  // by what reads it
        for (const instruction& i : code.code) {
          brought_back += i.kind == instruction::carry && i.again;
          if (i.fusion < 0 || code.fusions[static_cast<std::size_t>(i.fusion)].label != "attention") continue;
          const bool back = p.g.at(i.op).when != phase::forward;
          (back ? backwards : i.again ? again : forwards) += 1;
          for (std::size_t n = 0; n < now.size(); ++n)
            if (const std::vector<int>& some = p.d.nodes[n].operations; std::count(some.begin(), some.end(), i.op) > 0)
              how = p.d.nodes[n].kept[static_cast<std::size_t>(now[n])], kept = kept_by_readers(p.d, n, now);
        }
        INFO("mesh " << to_string(mesh) << ", level " << level << describe(how));
        CHECK(forwards == 3);
        CHECK(backwards == 3);
        CHECK(again == (how.inside == keeping::nothing && !kept ? 3 : 0));
        for (const buffer& b : code.buffers)  // no scores
          if (b.root == &b - code.buffers.data() && b.offset >= 0 && b.local.size() > 2)
            CHECK(b.local[b.local.size() - 1] * b.local[b.local.size() - 2] != 256l * 256);
      }
      CHECK(brought_back > 0);
    }
}

namespace {

// What the parts of a plan people use split, each keeping the last of what it may keep of which `may` holds.
template <class May>
std::vector<int> kept_as(const planned& p, const char* wishes, const May& may) {
  std::vector<int> choices = follow({"plan", {wishes}}, p.d, p.mesh);
  for (std::size_t n = 0; n < choices.size(); ++n) {
    const decision& node = p.d.nodes[n];
    if (choices[n] < 0) choices[n] = replicated(node);
    int best = 0;
    for (std::size_t c = 0; c < node.kept.size(); c += node.kept_all())
      if (may(node.kept[c])) best = static_cast<int>(c);
    choices[n] += best;
  }
  return choices;
}

transformer gpt_of(long layers, long batch, long sequence, long width, long heads) {
  transformer c = gpt2();
  c.layers = layers, c.heads = heads, c.width = width, c.vocabulary = 512;
  c.batch = batch, c.positions = c.sequence = sequence;
  return c;
}

// Bytes that backward finds of one layer of a GPT in 16 bits: what a layer more adds to what is live when it begins.
class layer_memory {
 public:
  static constexpr double b = 2, s = 128, h = 256, a = 4;

  layer_memory(int t, const char* wishes, keeping::inside_t inside, bool inputs, bool fused)
      : layer_memory(t, fused, [=](const planned& p) {
          return kept_as(p, wishes,
                         [&](const keeping& how) { return how.inside <= inside && (how.inputs || !inputs); });
        }) {}
  // Of what no contraction makes nothing is kept.
  layer_memory(int t, const char* wishes)
      : layer_memory(t, true, [=](const planned& p) {
          return recomputed_to(keeping::costly, kept_as(p, wishes, [](const keeping&) { return false; }), p.d);
        }) {}

 private:
  template <class Choices>
  layer_memory(int t, bool fused, const Choices& choices)
      : mesh_(mesh_of({t})), on_(fused ? cuda::catalogue_target(number::bfloat16) : target(2)),
        bytes(live(4, choices) - live(3, choices)) {}
  template <class Choices>
  double live(long layers, const Choices& choices_of) const {
    const transformer c =
        gpt_of(layers, static_cast<long>(b), static_cast<long>(s), static_cast<long>(h), static_cast<long>(a));
    const planned p(differentiate(refine(decoder(c))), mesh_, on_);
    const program code = realise("one", p.g, mesh_, p.d, choices_of(p), on_).code;
    const std::vector<long> live = live_bytes(code);
    for (std::size_t i = 0; i < code.code.size(); ++i)
      if (p.g.at(code.code[i].op).when != phase::forward || code.code[i].again) return static_cast<double>(live[i]);
    return 0;
  }

  const mesh_shape mesh_;
  const target on_;

 public:
  const double bytes;
};

}  // namespace

// The paper counts numbers of 16 bits and a byte for each element that is dropped or not, and all that attention makes:
// 34 sbh + 5 a s s b. Of that, ours keep neither what tells which elements are dropped (2 sbh + a s s b: numbers are
// counted, not kept) nor, without dropout, its result apart from the softmax (2 a s s b). Attention in one kernel keeps
// two rows of statistics for that (4 bytes). Beside what is published: statistics of norms, and the weights as products
// read them, 24 h h.
TEST_CASE("activations of a transformer layer take what is published (arXiv 2205.05198)") {
  using m = layer_memory;
  const double sbh = m::s * m::b * m::h, ssb = m::s * m::s * m::b * m::a, rows = m::s * m::b,
               weights = 24 * m::h * m::h;
  const char* const columns = "heads hidden";
  const char* const sequences = "heads>sequence hidden>sequence heads hidden sequence";
  for (const int t : {1, 2, 4}) {
    INFO("split " << t << " ways");
    const double norms = 16 * rows, attention = 8 * m::a * rows;
    CHECK(m(t, columns, keeping::all, true, false).bytes == 8 * sbh + norms + (24 * sbh + 2 * ssb + weights) / t);
    CHECK(m(t, columns, keeping::all, true, true).bytes == 8 * sbh + norms + (24 * sbh + attention + weights) / t);
    // What is recomputed takes its biases.
    const double biases = 14 * m::h / t + 2 * m::h;
    CHECK(m(t, columns, keeping::nothing, false, true).bytes == 2 * sbh + norms + weights / t + biases);
    if (t == 1) continue;
    // With the sequence split between, two norms that products read are kept as they were gathered.
    CHECK(m(t, sequences, keeping::all, true, true).bytes == 4 * sbh + (28 * sbh + norms + attention + weights) / t);
    CHECK(m(t, sequences, keeping::nothing, false, true).bytes == (2 * sbh + norms + weights) / t + biases);
    // Gathered again, and what GELU makes computed again: what is left of 34 are what norms, GELU and the projection
    // behind attention read, and queries, keys and values; contractions are kept with their biases added.
    CHECK(m(t, sequences).bytes == (20 * sbh + norms + attention + weights) / t);
  }
}

namespace {

// What a layer of a GPT computes in a step, and carries to and from the host.
struct layer_work {
  double flops = 0, carried = 0, efficiency = 0;  // of a device of 70 TFLOP/s that waits for what is carried
};

template <class May>
layer_work layer_work_of(long batch, long width, double host_bandwidth, const May& may) {
  const mesh_shape one = mesh_of({1});
  const auto of = [&](long layers) {
    const planned p(differentiate(refine(decoder(gpt_of(layers, batch, 1024, width, 16)))), one, 2,
                    keeping::weights_on_host);
    const program code = realise("one", p.g, one, p.d, kept_as(p, "", may), 2).code;
    machine m = plain_machine(one, 70e12, 1e30, 0);
    m.device.host_bandwidth = host_bandwidth;
    described_times ms(m, one);
    layer_work out;
    for (const instruction& i : code.code) {
      out.flops += work_of(i, code, p.g).flops;
      if (i.kind == instruction::carry) out.carried += static_cast<double>(code[i.in[0]].bytes);
      out.efficiency += ms(i, code, p.g);  // milliseconds, for now
    }
    return out;
  };
  const layer_work few = of(3), more = of(4);
  layer_work out{more.flops - few.flops, more.carried - few.carried, 0};
  out.efficiency = 1000 * out.flops / 70e12 / (more.efficiency - few.efficiency);
  return out;
}

}  // namespace

// Efficiency is ait bw / (ait bw + peak): arithmetic for each byte carried, bytes per second, arithmetic per second.
// They compute forward twice, 96 sbh^2 without the scores, and carry 32 bytes of state for each number of a weight, so
// that ait is sb / 4, and 24 h of borders; ours compute it once, with the scores, and carry 16: two moments, there and
// back.
TEST_CASE("the host pays as ZeRO-Infinity has it (arXiv 2104.07857)") {
  const auto efficiency = [](double ait, double bandwidth) { return ait * bandwidth / (ait * bandwidth + 70e12); };
  const double s = 1024;
  for (const auto& [batch, width] : {std::pair{1l, 1024l}, std::pair{2l, 2048l}}) {
    const double b = static_cast<double>(batch), h = static_cast<double>(width), weights = 12 * h * h;
    const double forward = 24 * s * b * h * h, scores = 12 * s * s * b * h, bias = 16 * 3 * h;
    const layer_work state = layer_work_of(batch, width, 1.5e12, [](const keeping& k) {
      return k == keeping{keeping::all, true, false, keeping::state_on_host};
    });
    const layer_work border = layer_work_of(batch, width, 2e9, [](const keeping& k) {
      return k == keeping{keeping::all, true, true, keeping::on_device};
    });
    const layer_work all = layer_work_of(batch, width, 1.5e12, [](const keeping& k) {
      return k == keeping{keeping::all, true, false, keeping::weights_on_host};
    });
    for (const layer_work& w : {state, border})
      CHECK(w.flops + forward - scores == Approx(96 * s * b * h * h).epsilon(1e-3));
    CHECK(state.carried == 16 * weights + bias);
    CHECK((state.flops + forward - scores) / (2 * (state.carried - bias)) == Approx(s * b / 4).epsilon(1e-3));
    CHECK((border.flops + forward - scores) / border.carried == Approx(24 * h).epsilon(1e-3));
    CHECK(state.efficiency == Approx(efficiency(state.flops / state.carried, 1.5e12)).epsilon(1e-6));
    // Their weights, of 16 bits, come for forward, recomputation and backward, and gradients leave: 8 bytes. Ours, of
    // 32, come for forward, for backward and the update that follows it, and leave.
    const double to_and_fro = all.carried - state.carried;
    CHECK(to_and_fro == 12 * (weights + 3 * h));
    CHECK((all.flops + forward - scores) / (to_and_fro * 8 / 12) == Approx(s * b).epsilon(1e-3));
    CHECK(border.efficiency == Approx(efficiency(border.flops / border.carried, 2e9)).epsilon(1e-6));
  }
}

namespace {

double plans_of(const decision_graph& d) {
  double out = 1;
  for (const decision& n : d.nodes) out *= static_cast<double>(n.choices());
  return out;
}

}  // namespace

TEST_CASE("what is kept is chosen exactly, whatever the limit") {
  const long wanted = from_environment("CFP_GRAPHS", how_many(1000, 250, 4));
  long graphs = 0, limits = 0;
  std::array<long, 3> rest{};                   // graphs whose weights may rest so far
  const unsigned first = sanitized ? 2097 : 1;  // the first ones of few may leave something on the host
  for (unsigned seed = first; graphs < wanted; ++seed) {
    std::mt19937 random(seed);
    const graph forward = random_repeated_layers(random, 2, random_sizes::scarce).forward;
    const mesh_shape mesh = mesh_of({2});
    const keeping::resting_t furthest = seed % 10 == 0  ? keeping::weights_on_host
                                        : seed % 2 == 0 ? keeping::state_on_host
                                                        : keeping::on_device;
    const planned p(differentiate(refine(forward)), mesh, 2, furthest);
    if (plans_of(p.d) > (furthest == keeping::weights_on_host ? 3e5 : 3e4) || p.d.remade.empty()) continue;
    ++rest[p.d.furthest_rest()];
    INFO("seed " << seed);
    ++graphs;
    machine m = plain_machine(mesh, 1e9, 1e8, 1e-6, {{1e-6, 1e7}});
    m.device.host_bandwidth = 1e8;
    cost_graph costs = roofline(p.g, mesh, p.d, m, 2).build();
    for (const auto& [memory, time] : pareto(costs)) {
      costs.memory_limit = memory;
      const solution s = solve(costs);
      REQUIRE(s.feasible);
      CHECK(s.optimal);
      CHECK(s.memory <= memory);
      CHECK(s.time == Approx(time).epsilon(1e-9));
      ++limits;
    }
  }
  CHECK(limits > 3 * graphs);
  CHECK(rest[keeping::state_on_host] > 0);
  CHECK((sanitized || rest[keeping::weights_on_host] > 5));
}

namespace {

// Eight layers on a machine.
struct eight_layers {
  eight_layers() {
    transformer c = read_decoder(deep_families::carried("alpa-gpt-1.3b"));
    c.layers = 8, c.batch = 32, c.sequence = c.positions = 1024;
    g = differentiate(refine(decoder(c)));
    o.lowered_for = cuda::catalogue_target(number::bfloat16);
  }
  const machine m = load_machine(std::string(CFP_SOURCE_DIR) + "/examples/machines/a100-pcie-4.json");
  graph g;
  machine_options o;
};

struct searched {
  std::vector<mesh_plans> all;
  const evaluated* best() const { return all.front().plans.found(); }
  const decision_graph& decided() const { return all.front().decisions; }
  bool recomputes() const {
    for (std::size_t n = 0; n < decided().nodes.size(); ++n)
      if (best()->p.choices[n] >= static_cast<int>(decided().nodes[n].kept_all())) return true;
    return false;
  }
};

}  // namespace

TEST_CASE("plans keep what fits, and are never behind those that compute all or nothing again", "[heavy]") {
  const eight_layers on;
  const graph& g = on.g;
  const machine& m = on.m;
  machine_options o = on.o;
  const auto found = [&](recomputing again, double memory) {
    o.recompute = again, o.memory = std::lround(memory);
    return searched{search_meshes(g, m, o, {mesh_of({4})})};
  };
  const searched free = found(recomputing::none, 0), open = found(recomputing::where_needed, 0);
  REQUIRE(open.best() != nullptr);
  CHECK(open.best()->p.choices == free.best()->p.choices);  // nothing is changed where all fits
  CHECK(!open.recomputes());
  const auto peak = static_cast<double>(free.best()->peak);
  double before = free.best()->when.ms;
  int fits_only_so = 0;
  for (const double share : {0.9, 0.7, 0.5}) {
    INFO("of the memory of the free plan " << share);
    const searched less = found(recomputing::where_needed, share * peak), kept = found(recomputing::none, share * peak),
                   all = found(recomputing::all, share * peak);
    REQUIRE(less.best() != nullptr);
    CHECK(static_cast<double>(less.best()->peak) <= share * peak);
    CHECK(less.best()->when.ms > 0.999 * before);
    before = less.best()->when.ms;
    if (kept.best() != nullptr) CHECK(before <= kept.best()->when.ms);
    if (all.best() != nullptr) CHECK(before <= 1.002 * all.best()->when.ms);
    fits_only_so += kept.best() == nullptr;
  }
  CHECK(fits_only_so > 0);
}

TEST_CASE("optimizer state rests on the host where that is the fastest that fits, and no more of it than must",
          "[heavy]") {
  const eight_layers on;
  machine_options o = on.o;
  const auto found = [&](bool may_host, long memory) {
    o.may_host = may_host, o.memory = memory;
    return searched{search_meshes(on.g, on.m, o, {mesh_of({4})})};
  };
  const auto there = [](const searched& s, bool may) {
    long out = 0;
    for (std::size_t n = 0; n < s.decided().nodes.size(); ++n)
      if (const decision& d = s.decided().nodes[n]; d.furthest_rest() > keeping::on_device)
        out += may || d.kept[static_cast<std::size_t>(s.best()->p.choices[n])].rests > keeping::on_device;
    return out;
  };
  const long least = found(false, 1).all.front().plans.least;
  for (const double share : {0.95, 0.8}) {
    INFO("of the memory that nothing fits below without " << share);
    const long memory = std::lround(share * static_cast<double>(least));
    CHECK(found(false, memory).best() == nullptr);
    const searched with = found(true, memory);
    REQUIRE(with.best() != nullptr);
    CHECK(with.best()->peak <= memory);
    CHECK(there(with, false) > 0);
    CHECK((share < 0.9 || there(with, false) < there(with, true)));
    CHECK(with.best()->gap >= 0);
    CHECK(with.best()->gap <= o.gap);
    const auto& usual = with.all.front().plans.usual;
    CHECK(std::any_of(usual.begin(), usual.end(), [](const evaluated& e) {
      return e.fits && e.p.name.ends_with("all recomputed, state on the host");
    }));
  }
  const searched without = found(false, least + least / 50), with = found(true, least + least / 50);
  REQUIRE(without.best() != nullptr);
  REQUIRE(with.best() != nullptr);
  CHECK(with.best()->when.ms <= 1.002 * without.best()->when.ms);
}

TEST_CASE("what backward reads rests on the host where to compute it again does not save enough", "[heavy]") {
  const eight_layers on;
  machine_options o = on.o;
  const auto found = [&](double host_bandwidth, long memory) {
    machine m = on.m;
    m.device.host_bandwidth = host_bandwidth;
    o.may_host = host_bandwidth > 0;
    o.memory = memory;
    return searched{search_meshes(on.g, m, o, {mesh_of({4})})};
  };
  const auto there = [](const searched& s) { return s.best()->p.code.host_bytes(false, true); };
  const searched free = found(1e11, 0);
  CHECK(free.best()->p.code.host_bytes(true, true) == 0);
  const long by_sums = free.all.front().plans.candidates.front().peak;  // before its decisions are exchanged
  const auto within = [&](int percent) {
    const long memory = by_sums / 100 * percent;
    const std::array<searched, 3> out{found(0, memory), found(2.5e10, memory), found(1e11, memory)};
    for (const searched& s : out)
      if (s.best() != nullptr) CHECK(s.best()->peak <= memory);
    return out;
  };
  const auto [none, narrow, wide] = within(42);
  CHECK(none.best() == nullptr);
  REQUIRE(narrow.best() != nullptr);
  REQUIRE(wide.best() != nullptr);
  CHECK(there(narrow) > 0);
  CHECK(there(wide) > 0);
  CHECK(wide.best()->when.ms < narrow.best()->when.ms);
  CHECK(wide.best()->when.ms > free.best()->when.ms);
  for (const int percent : {46, 48, 50, 70}) {  // more ways are never slower
    INFO(percent << "%");
    const auto [without, with_narrow, with_wide] = within(percent);
    for (const searched* more : {&with_narrow, &with_wide}) CHECK(more->best()->when.ms <= without.best()->when.ms);
  }
}

TEST_CASE("what memory is worth is what a limit gives") {
  const eight_layers on;
  const graph& g = on.g;
  const machine& m = on.m;
  machine_options o = on.o;
  const mesh_points curve = mesh_curve(g, m, mesh_of({4}), o, sanitized ? 3 : 8);
  REQUIRE(curve.plans.size() >= 3);
  o.recompute = recomputing::none;
  const mesh_points kept = mesh_curve(g, m, mesh_of({4}), o, 2);
  o.recompute = recomputing::where_needed;
  CHECK(curve.plans.front().when.ms == kept.plans.front().when.ms);  // nothing is changed where all fits
  CHECK(curve.plans.front().peak == kept.plans.front().peak);
  CHECK(curve.plans.back().peak < kept.plans.back().peak);  // and the leanest is leaner
  CHECK(curve.plans.back().when.ms > curve.plans.front().when.ms);
  for (const evaluated& e : curve.plans) {
    INFO(e.peak << " bytes, " << e.when.ms << " ms");
    o.memory = e.peak;
    const std::vector<mesh_plans> within = search_meshes(g, m, o, {mesh_of({4})});
    const evaluated* const found = within[0].plans.found();
    REQUIRE(found != nullptr);
    CHECK(found->when.ms <= e.when.ms * (1 + 2 * o.gap));  // each is within that of the best
  }
}

}  // namespace recomputation_tests
