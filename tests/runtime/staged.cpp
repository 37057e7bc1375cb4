// Every schedule that updates once a step trains as one rank does, wherever a model is cut, and sends exactly what its
// programs say.
#include "../catch.hpp"

#include "../from_environment.hpp"
#include "small.hpp"

#include <cfp/backend/host/kernels_of.hpp>
#include <cfp/model/slices.hpp>
#include <cfp/pipeline/named_schedules.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/profile/machine/send_time.hpp>
#include <cfp/profile/machine/slot_costs.hpp>
#include <cfp/profile/machine/time_terms.hpp>
#include <cfp/program/find_saved.hpp>
#include <cfp/program/stages/lower_stages.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

namespace staged_tests {

using namespace cfp;
using namespace cfp::families;
using namespace small_tests;

namespace {

constexpr long rows = 2;  // of a micro-batch

struct tiny_model {
  graph forward, g;  // the second with backward and updates
  text_layout inputs{};
  byte_text text() const {
    text_layout what = inputs;
    what.positions = g.find("positions") >= 0;
    return byte_text(some_text(), rows, 8, 5, what);
  }
};

training clipped(int micro_batches) {
  training how;
  how.micro_batches = micro_batches;
  how.clip = 1;
  return how;
}

tiny_model made(const std::string& family, int micro_batches) {
  transformer c = tiny_config();
  c.attention_dropout = c.residual_dropout = c.embedding_dropout = 0.1;
  const auto small = [](auto config) {
    config.batch = rows, config.sequence = 8;
    return config;
  };
  tiny_model out;
  if (family == "gpt") out.forward = refine(decoder(small(c)));
  if (family == "llama") out.forward = refine(decoder(small(read_decoder(tiny("llama")))));
  if (family == "t5") {
    out.forward = refine(t5(small(read_t5(tiny("t5")))));
    out.inputs = t5_layout(small(read_t5(tiny("t5"))));
  }
  if (family == "mixtral") out.forward = refine(decoder(small(read_decoder(tiny("mixtral")))));
  out.g = differentiate(out.forward, clipped(micro_batches));
  return out;
}

struct schedule_case {
  const char* name;
  std::function<pipeline_schedule(int ranks, int micro_batches)> of;
};
const std::vector<schedule_case> schedules = {
    {"gpipe", gpipe},
    {"1f1b", one_forward_one_backward},
    {"interleaved", [](int ranks, int m) { return interleaved(ranks, 2, (m + ranks - 1) / ranks * ranks); }},
    {"terapipe", [](int ranks, int m) { return terapipe(ranks, m, 2); }},
    {"seq1f1b", [](int ranks, int m) { return sequence_1f1b(ranks, m, 2); }},
    {"zb_h1", zero_bubble_h1},
    {"zb_h2", zero_bubble_h2},
    {"chimera", [](int ranks, int m) { return chimera((ranks + 1) / 2 * 2, (m + 1) / 2 * 2); }},
};

// What a schedule runs: the model cut, and where its dimension is in slices, cut so too.
sliced_graph in_stages(const graph& forward, std::vector<int> cuts, const pipeline_schedule& s, const training& how,
                       const char* dimension, std::vector<long> lengths) {
  if (s.slices == 1) return {differentiate(forward, how), std::move(cuts)};
  sliced_graph out = in_slices(forward, cuts, dimension, lengths);
  out.g = differentiate(out.g, how);
  return out;
}
// Parts of `all`, at random.
std::vector<long> random_lengths(int slices, long all, std::mt19937& random) {
  std::vector<long> out(static_cast<std::size_t>(slices), 1);
  for (long left = all - slices; left > 0; --left) ++out[random() % out.size()];
  return out;
}

// A random sharding of the stages, with what is kept at random too.
sharding random_sharding(const graph& g, const mesh_shape& mesh, std::mt19937& random) {
  if (mesh.rank() == 0) return sharding::replicated(g);
  const block_structure blocks = parallel_blocks(g);
  const recomputation again(g, blocks, segments(g, blocks), find_saved(g, sizeof(double)));
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered, {}, &again);
  return shard(g, d, random_choices(d, random));
}

// What each rank counted in a step, and the most it held.
void check_counts(backend& on, const stage_programs& p, const batch_source& data) {
  std::vector<collective_count> counted(static_cast<std::size_t>(on.mesh().devices()));
  std::vector<long> peak(counted.size());
  shared_batches batches(p.g, data);
  on.run([&](rank& r) {
    const program& mine = p.of(r.number());
    const auto loaded = r.load(mine, p.g, 3);
    r.reset_counted();
    one_step(*loaded, mine, batches, 1);
    const auto me = static_cast<std::size_t>(r.number());
    for (const traffic& group : r.counted())
      for (std::size_t k = 0; k < group.calls.size(); ++k)
        counted[me].calls[k] += group.calls[k], counted[me].bytes[k] += group.bytes[k];
    peak[me] = r.peak_bytes();
  });
  for (std::size_t r = 0; r < counted.size(); ++r) {
    const program& mine = p.of(static_cast<int>(r));
    CAPTURE(r);
    CHECK(counted[r] == count_collectives(mine, p.g));
    CHECK(peak[r] >= mine.arena_bytes + mine.persistent_bytes());
    CHECK(peak[r] <= predicted_peak(mine));
  }
}

void check_trains(const std::string& family, const pipeline_schedule& s, const mesh_shape& of_stage,
                  std::mt19937& random) {
  const tiny_model model = made(family, s.micro_batches);
  const sliced_graph staged = in_stages(model.forward, random_cuts(model.forward, s.stages / s.slices, random), s,
                                        clipped(s.micro_batches), "sequence", random_lengths(s.slices, 8, random));
  schedule order;
  order.overlap = random() % 2 == 0;
  const stage_programs p = lower_stages(staged.g, of_stage, random_sharding(staged.g, of_stage, random),
                                        {staged.first, s, {}}, sizeof(double), order);
  const byte_text text = model.text();
  const trained alone = train_on(single(model.g, sizeof(double)), model.g, text, 4, 3);
  CHECK(all_changed(alone));
  const auto on = threads(p.along[0].mesh, number::float64);
  train_options remember;
  remember.keep_changes = true;
  const difference apart = compare(alone, train(*on, p, text, 4, 3, remember), model.g);
  CHECK(apart.loss <= 1e-10);
  INFO("worst tensor " << apart.worst);
  CHECK(apart.parameters <= 1e-7);
  check_counts(*on, p, text);
}

// An operator that fails when it has been applied so often, on whatever rank that is.
std::atomic<long> left_to_apply{1l << 40};
inline constexpr struct fragile_t : op<"... -> ...", fragile_t> {
  template <class T>
  static T apply(T x) {
    if (left_to_apply-- == 0) throw std::runtime_error("told to fail");
    return x * cfp::sigmoid(x);
  }
} fragile;

graph fragile_model(int layers) {
  model net;
  const dimension batch{"batch", 2}, widths[] = {{"even", 8}, {"odd", 8}};
  tensor x = net.input("x", {batch, widths[0]}, element::real, {});
  for (int l = 0; l < layers; ++l)
    x = fragile(linear(x, net.weight("layer" + std::to_string(l), {widths[l % 2], widths[(l + 1) % 2]}, {0, 0.5})));
  net.recorded.loss = op<"batch width, batch width -> ">{}(x, x).id;
  return net.recorded;
}
// Cut behind its layers.
std::vector<int> layers_of(const graph& g, int stages) {
  std::vector<int> out;
  for (int o = 1; static_cast<int>(out.size()) < stages - 1; ++o)
    if (g.at(o).op == &info<fragile_t>) out.push_back(o + 1);
  return out;
}

}  // namespace

TEST_CASE("a send takes its latency and its bytes, over links that all ranks of a stage share") {
  mesh_shape mesh;
  for (const auto& [label, size] : {std::pair("stage", 4), std::pair("data", 4)}) mesh.axes.push({name(label), size});
  const machine plain = plain_machine(mesh, 1e13, 1e12, 5e-6, {{1e-5, 1e9}, {1e-6, 1e10}});
  for (const int to : {1, 2, 3}) CHECK(send_seconds(plain, mesh, 0, to, 1000) == Approx(5e-6 + 1e-5 + 4 * 1000 / 1e9));
  const machine node = load_machine(std::string(CFP_SOURCE_DIR) + "/examples/machines/h100-8x8-400g.json");
  mesh.axes[0].size = 16;
  const double inside = send_seconds(node, mesh, 0, 1, 1e9), across = send_seconds(node, mesh, 1, 2, 1e9);
  CHECK(inside < across);
  CHECK(across == Approx(4 * 1e9 / node.levels[1].bandwidth).epsilon(0.01));  // four of eight send through the node's
  CHECK(send_seconds(node, mesh, 0, 2, 1e9) == across);
  CHECK(send_seconds(node, mesh, 0, 1, 1) < send_seconds(node, mesh, 1, 2, 1));
}

TEST_CASE("programs take what their schedule takes") {
  training how;
  how.micro_batches = 4;
  const graph forward = refine(fragile_model(8));
  std::mt19937 random(37);
  for (const schedule_case& made_by : schedules)
    for (const int ranks : {2, 4}) {
      const pipeline_schedule s = made_by.of(ranks, 4);
      std::vector<stage_cost> costs(static_cast<std::size_t>(s.stages));
      for (stage_cost& c : costs)
        c.forward = 1 + static_cast<double>(random() % 8) / 8, c.backward_inputs = 1.25, c.backward_weights = 1.5;
      const sliced_graph in = in_stages(forward, layers_of(forward, s.stages / s.slices), s, how, "batch", {1, 1});
      const stage_programs p = lower_stages(in.g, {}, sharding::replicated(in.g), {in.first, s, costs});
      std::vector<std::vector<double>> ms;  // the first operator of a slot takes all its time
      for (std::size_t r = 0; r < p.along.size(); ++r) {
        const program& mine = p.along[r];
        ms.emplace_back(mine.code.size());
        std::size_t k = 0;
        for (const slot& x : s.ranks[r]) {
          if (x.kind == slot::update) continue;
          auto i = static_cast<std::size_t>(mine.slots[k++].first);
          while (mine.code[i].kind != instruction::compute) ++i;
          ms[r][i] = costs[static_cast<std::size_t>(x.stage)].of(x.kind);
        }
      }
      INFO(s.name << " on " << ranks);
      std::vector<stream_events> seen;
      const stage_timeline all = simulate(p.along, ms, {}, &seen);
      const pipeline_run expected = simulate(s, costs);
      double idle = 0;  // of all ranks: the bubble
      for (std::size_t r = 0; r < p.along.size(); ++r) {
        double together = 0;
        for (const time_term& t : time_terms(p.along[r], p.g, seen[r], ms[r], all.ms)) {
          together += t.ms;
          if (t.name == "idle") idle += t.ms;
          CHECK(std::set<std::string>{"forward", "backward", "update", "idle"}.count(t.name) == 1);
        }
        CHECK(together == Approx(all.ms).epsilon(1e-9));
      }
      CHECK(idle / (ranks * all.ms) == Approx(expected.idle()).margin(1e-9));
      CHECK(all.ms == Approx(expected.ms).epsilon(1e-9));
      CHECK(all.idle() == Approx(expected.idle()).epsilon(1e-9));
      const slot_costs alone = costs_of_slots(simulate_apart(p.along, ms), s, {});
      double busy = 0;
      for (std::size_t stage = 0; stage < costs.size(); ++stage) {
        const stage_cost &c = costs[stage], &found = alone.of_stage[stage];
        busy += c.of(slot::forward) + c.of(slot::backward);
        CHECK(found.forward == Approx(c.forward).epsilon(1e-9));
        CHECK(found.of(slot::backward) == Approx(c.of(slot::backward)).epsilon(1e-9));
      }
      CHECK(alone.busy == Approx(busy).epsilon(1e-9));
    }
}

TEST_CASE("stages take as much memory for many micro-batches as for few, and little more than is live") {
  for (const auto& [chunks, name] : {std::pair(1, "1f1b"), std::pair(2, "interleaved"), std::pair(1, "zb_h1")})
    for (unsigned k = 0; k < static_cast<unsigned>(how_many(100, 5, 2)); ++k) {
      const unsigned seed = 3 + k;
      const mesh_shape inside = k == 0 ? mesh_shape() : mesh_of({2});
      std::vector<std::vector<long>> all, arenas;
      for (const int micro_batches : {8, 16, 32}) {
        const graph g = made("gpt", micro_batches).g;
        const pipeline_schedule s = schedule_named(name, {2, micro_batches, chunks, {}});
        std::mt19937 random(seed);
        const sharding plan = random_sharding(g, inside, random);
        const stage_programs p =
            lower_stages(g, inside, plan, {random_cuts(g, s.stages, random), s, {}}, sizeof(double), {.overlap = true});
        all.emplace_back(), arenas.emplace_back();
        for (const program& one : p.along) {
          const std::vector<long> live = live_bytes(one);
          all.back().push_back(*std::max_element(live.begin(), live.end()));
          CAPTURE(name, micro_batches, inside.rank(), seed, one.place, all.back().back());
          arenas.back().push_back(one.arena_bytes);
          if (k == 0) CHECK(static_cast<double>(one.arena_bytes) <= 1.15 * static_cast<double>(all.back().back()));
        }
      }
      CAPTURE(name, inside.rank(), seed);
      CHECK(all[0] == all[1]);
      CHECK(all[0] == all[2]);
      if (k == 0) CHECK(arenas[1] == arenas[0]);
      if (k == 0) CHECK(arenas[2] == arenas[0]);
      for (std::size_t place = 0; place < arenas[0].size(); ++place)
        for (const std::vector<long>& many : {arenas[1], arenas[2]})
          CHECK(static_cast<double>(many[place]) <= 1.02 * static_cast<double>(arenas[0][place]));
    }
}

TEST_CASE("a rank that fails in any slot ends all of them") {
  training how;
  how.micro_batches = 4;
  const graph forward = refine(fragile_model(4));
  const batch_source data = [](long) { return batch{{"x", std::vector<float>(16, 0.5f)}}; };
  std::mt19937 random(31);
  for (const schedule_case& s : schedules) {
    const pipeline_schedule order = s.of(2, 4);
    const sliced_graph in =
        in_stages(forward, layers_of(forward, order.stages / order.slices), order, how, "batch", {1, 1});
    const stage_programs p = lower_stages(in.g, {}, sharding::replicated(in.g), {in.first, order, {}});
    const auto trains = [&](long until) {
      const auto on = threads(p.along[0].mesh, number::float32, kernels_of<fragile_t>());
      on->set_deadline(std::chrono::seconds(20));
      left_to_apply = until;
      const auto begin = std::chrono::steady_clock::now();
      std::string said;
      try {
        train(*on, p, data, 1, 3);
      } catch (const rank_failure& e) {
        said = e.what();
      }
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
      return said;
    };
    constexpr long never = 1l << 40;
    CHECK(trains(never).empty());
    const long all = never - left_to_apply;
    for (long k = how_many(60, 12, 4); k > 0; --k) {
      const long at = static_cast<long>(random()) % all;
      INFO(s.name << ", " << at << " of " << all);
      const std::string said = trains(at);
      CHECK(said.find("failed: told to fail") != std::string::npos);
    }
  }
}

TEST_CASE("every schedule trains as one rank does, cut anywhere") {
  std::mt19937 random(29);
  long count = 0;
  const long every = how_many(1, 5, 19);
  for (const std::string family : {"gpt", "t5", "llama", "mixtral"})
    for (const schedule_case& s : schedules)
      for (const int ranks : {2, 3, 4})
        for (const int inside : {1, 2}) {
          if (std::string(s.name) == "chimera" && ranks == 3) continue;
          if (s.of(ranks, 4).slices > 1 && (family == "t5" || family == "mixtral")) continue;  // see below
          if (count++ % every != 0) continue;
          INFO(family << ", " << s.name << " on " << ranks << " x " << inside);
          mesh_shape of_stage;
          if (inside > 1) of_stage = mesh_of({inside});
          check_trains(family, s.of(ranks, 4), of_stage, random);
        }
}

TEST_CASE("slices of every number and length train as one rank does, on the programs of a place alone too") {
  std::mt19937 random(43);
  for (const std::string family : {"gpt", "llama"})
    for (const int slices : {1, 3, 8})
      for (const int ranks : {1, 2}) {
        INFO(family << " in " << slices << " slices on " << ranks);
        const bool first = random() % 2 == 0;
        const pipeline_schedule s = first ? terapipe(ranks, 2, slices) : sequence_1f1b(ranks, 2, slices);
        check_trains(family, s, random() % 2 == 0 ? mesh_of({2}) : mesh_shape(), random);
      }
}

// One head that sees so far ahead, of four positions.
graph attending(double reach) {
  model net;
  const dimension batch{"batch", 2}, heads{"heads", 1}, width{"width", 8};
  const tensor x = net.input("x", {batch, heads, {"sequence", 4}, width}, element::real, {});
  const tensor score = scores(x, x), max = masked_max(score, 1.0, reach), sum = masked_sum(score, max, 1.0, reach);
  const tensor seen = weighted_sum(masked_softmax(score, max, sum, 1.0, reach), x);
  net.recorded.loss = op<"b h s d, b h s d -> ">{}(seen, seen).id;
  return refine(net.recorded);
}
// Sentences of compilers and models are broken into lines.
std::string in_one_line(std::string s) {
  for (std::size_t at; (at = s.find("\n  ")) != std::string::npos;) s.replace(at, 3, s[at - 1] == '.' ? "" : " ");
  return s;
}

TEST_CASE("what needs all of a sequence at once cannot be cut into slices") {
  const auto says = [](const graph& forward, const char* dimension, std::vector<long> lengths,
                       std::vector<int> cuts = {}) -> std::string {
    try {
      in_slices(forward, cuts, dimension, lengths);
    } catch (const cfp::error& e) {
      return e.what();
    }
    return "";
  };
  const graph gpt = made("gpt", 1).forward;
  CHECK(says(gpt, "sequence", {3, 5}).empty());
  CHECK(says(gpt, "sequence", {3, 4}) == "2 slices of 'sequence' have 7 positions together, the model 8");
  CHECK(says(gpt, "sequence", {8, 0}) == "a slice has 0 positions: each has from 1 to 2147483648");
  CHECK(says(gpt, "embedding", {3, 5}) == "no input of the model has a dimension 'embedding' to be sliced");
  CHECK(says(gpt, "sequence", {3, 5}, {0}) ==
        "stage 1 begins with operation 0: stages begin with forward operations, each after the one before");
  CHECK(says(made("gpt", 1).g, "sequence", {3, 5}) == "slices are of a model before it is differentiated");
  const auto ends = [](const std::string& said, const std::string& with) {
    INFO(said);
    CHECK(in_one_line(said).ends_with(with + ", so 'sequence' cannot be cut into slices"));
  };
  ends(says(made("t5", 1).forward, "sequence", {3, 5}),
       "it reads the whole of decoder.block.0.layer.0.SelfAttention.relative_attention_bias.lookup along with slices");
  ends(says(made("mixtral", 1).forward, "sequence", {3, 5}), "queue_places needs all of it at once");
  ends(says(attending(everywhere), "sequence", {2, 2}),
       "what is made of x needs all of it at once, as no mask keeps a position from what comes after it");
  CHECK(says(attending(-1), "sequence", {2, 2}).empty());
  graph endless = gpt;
  endless.loss = -1;
  CHECK(says(endless, "sequence", {3, 5}) == "a model in slices ends in one number, its loss, and this one does not");
}

TEST_CASE("a step of one micro-batch runs in stages too") {
  std::mt19937 random(41);
  for (const std::string family : {"gpt", "t5"})
    for (const int ranks : {2, 3}) {
      INFO(family << " on " << ranks);
      check_trains(family, gpipe(ranks, 1), mesh_of({2}), random);
    }
}

TEST_CASE("programs for numbers of another width than the ranks' are refused") {
  training how;
  how.micro_batches = 2;
  const graph g = differentiate(refine(fragile_model(2)), how);
  const batch_source data = [](long) { return batch{{"x", std::vector<float>(16, 0.5f)}}; };
  const stage_programs p = lower_stages(g, {}, sharding::replicated(g), {layers_of(g, 2), gpipe(2, 2), {}});
  for (const auto& [type, bytes] : {std::pair(number::float64, "8"), std::pair(number::bfloat16, "2")}) {
    std::string said;
    try {
      train(*threads(p.along[0].mesh, type, kernels_of<fragile_t>()), p, data, 1, 3);
    } catch (const rank_failure& e) {
      said = e.what();
    }
    INFO(said);
    CHECK(said.find(std::string("a program is lowered for numbers of 4 bytes, and those of these ranks have ") +
                    bytes) != std::string::npos);
  }
}

TEST_CASE("ranks of another mesh than the programs' are refused before any of them runs") {
  training how;
  how.micro_batches = 2;
  const graph g = differentiate(refine(fragile_model(2)), how);
  const batch_source data = [](long) { return batch{{"x", std::vector<float>(16, 0.5f)}}; };
  const stage_programs p = lower_stages(g, mesh_of({2}), sharding::replicated(g), {layers_of(g, 2), gpipe(2, 2), {}});
  for (const mesh_shape& ranks : {mesh_shape{}, mesh_of({2}), mesh_of({4}), mesh_of({4, 2})})
    CHECK_THROWS_WITH(train(*threads(ranks, number::float32, kernels_of<fragile_t>()), p, data, 1, 3),
                      Catch::StartsWith("a program is lowered for mesh stage=2,") &&
                          Catch::EndsWith("make ranks of the program's own mesh"));
  CHECK(train(*threads(mesh_of({2, 2}), number::float32, kernels_of<fragile_t>()), p, data, 1, 3).loss.size() == 1);
}

TEST_CASE("what cannot be stages is refused with a sentence") {
  training how;
  how.micro_batches = 4;
  const graph g = differentiate(refine(fragile_model(4)), how);
  const auto says = [&](const mesh_shape& inside, std::vector<int> first, const pipeline_schedule& s) -> std::string {
    try {
      lower_stages(g, inside, sharding::replicated(g), {std::move(first), s, {}});
    } catch (const bad_input& e) {
      return e.what();
    }
    return "";
  };
  const std::vector<int> first = layers_of(g, 2);
  CHECK(says({}, first, one_forward_one_backward(2, 4)).empty());
  CHECK(says({}, first, pipedream(2, 4)) ==
        "schedule pipedream updates stage 0 several times: it is simulated, not run; the schedules that are run update "
        "once a step");
  CHECK(says({}, first, gpipe(2, 8)) ==
        "schedule gpipe is of 8 micro-batches, and the training graph of 4: training::micro_batches must be the "
        "schedule's");
  CHECK(says({}, first, gpipe(3, 4)) == "schedule gpipe has 3 stages, and the model is cut into 2");
  CHECK(says({}, {0}, gpipe(2, 4)) ==
        "stage 1 begins with operation 0: stages begin with forward operations, each after the one before");
  CHECK(says(mesh_of({1, 1, 1}), first, gpipe(2, 4)).empty());
  mesh_shape none = mesh_of({1}), named = none;
  none.axes[0].size = 0, named.axes[0].label = name("stage");
  CHECK(says(none, first, gpipe(2, 4)).ends_with("of the mesh inside a stage has no device"));
  CHECK(says(named, first, gpipe(2, 4)).ends_with("is called as that of the stages is: give it another name"));
  const graph other = refine(fragile_model(2));
  CHECK_THROWS_WITH(lower_stages(g, {}, sharding::replicated(other), {first, gpipe(2, 4), {}}),
                    Catch::EndsWith("make it of the graph that is lowered"));
  std::vector<stage_cost> costs(2);
  costs[1].forward = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(lower_stages(g, {}, sharding::replicated(g), {first, gpipe(2, 4), costs}),
                    Catch::Contains("must be numbers from 0 to 1e18, one is nan"));
}

}  // namespace staged_tests
