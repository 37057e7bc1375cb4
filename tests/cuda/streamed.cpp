// Ranks with GPUs over the stand-in for CUDA and NCCL: programs run in streams and as graphs, train as on emulated GPUs
// that run all at once, count what these count, and no failure makes a rank hang.
#include "../catch.hpp"
#include "../own_operators.hpp"

#include "streamed_gpus.hpp"

#include "../runtime/small.hpp"
#include "../scanned.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/backend/device_memory.hpp>
#include <cfp/backend/emulated_gpus.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/model/slices.hpp>
#include <cfp/pipeline/chimera.hpp>
#include <cfp/pipeline/phased_schedules.hpp>
#include <cfp/profile/table.hpp>
#include <cfp/program/find_saved.hpp>
#include <cfp/program/stages/lower_stages.hpp>
#include <cfp/session/session.hpp>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

namespace streamed_cases {

using namespace cfp;
using namespace own_operators;  // of which no kernels are there
using namespace small_tests;
using namespace families;
using namespace std::chrono_literals;
using stand_in::seen;

namespace {

transformer one_layer() {
  transformer c = tiny_config();
  c.embedding_dropout = c.attention_dropout = c.residual_dropout = 0;
  c.layers = 1;
  c.width = 32;
  c.heads = 2;
  c.vocabulary = 128;
  return c;
}

void check_nothing_wrong() {
  CHECK(seen.misuses == 0);
  CHECK(seen.made == seen.destroyed + seen.aborted);
  CHECK(seen.events == 0);
  CHECK(seen.pinned == 0);
}

void one_step_ahead(loaded_program& on, const program& p, shared_batches& data, long number) {
  on.run_ahead(number, p.passes, [&](int pass) { data.feed(on, number * p.passes + pass); });
}

struct outcome {
  trained result;
  std::vector<traffic> sent;
};

outcome run_on(backend& on, const program& p, const graph& g, const batch_source& text, long steps) {
  train_options remember;
  remember.keep_changes = true;
  outcome out{train(on, p, g, text, steps, 3, remember), {}};
  shared_batches batches(g, text);
  on.run([&](rank& r) {
    r.reset_counted();
    const std::unique_ptr<loaded_program> loaded = r.load(p, g, 3);
    for (long step = 1; step <= steps; ++step) one_step(*loaded, p, batches, step);
    if (r.leads()) out.sent = r.counted();
  });
  return out;
}

void check_as_at_once(program& p, const graph& g, const mesh_shape& mesh, const batch_source& text, long steps) {
  stand_in::reset();
  {
    const std::unique_ptr<backend> here = streamed::gpus_with<streamed::host_products>(mesh, number::float32),
                                   at_once = emulated_gpus(mesh, number::float32);
    here->lowered_for().complete(p, g);
    const outcome a = run_on(*here, p, g, text, steps), b = run_on(*at_once, p, g, text, steps);
    CHECK(a.result.loss == b.result.loss);
    CHECK(a.result.change == b.result.change);
    REQUIRE(a.sent.size() == b.sent.size());
    for (std::size_t axis = 0; axis < a.sent.size(); ++axis) {
      CHECK(a.sent[axis].calls == b.sent[axis].calls);
      CHECK(a.sent[axis].bytes == b.sent[axis].bytes);
    }
    CHECK(seen.graphs > 0);
  }
  check_nothing_wrong();
}

// Says how much of the programs is carried to the host and back.
long check_plans_as_at_once(const graph& g, const mesh_shape& mesh, int plans, long steps, bool may_host = false) {
  const byte_text text = text_for(g);
  const block_structure blocks = parallel_blocks(g);
  const recomputation again(g, blocks, segments(g, blocks), find_saved(g, cuda::catalogue_target(number::float32)));
  const decision_graph d = decisions(g, blocks, mesh, axis_choice::regathered, {}, may_host ? &again : nullptr,
                                     may_host ? keeping::weights_on_host : keeping::on_device);
  long carried = 0;
  std::mt19937 random(7);
  for (int n = 0; n < plans; ++n) {
    CAPTURE(to_string(mesh), n);
    schedule order;
    order.overlap = n % 2 == 0;
    plan p = random_plan(g, mesh, d, random, sizeof(float), order);
    check_as_at_once(p.code, g, mesh, text, steps);
    for (const instruction& i : p.code.code) carried += i.kind == instruction::carry;
  }
  return carried;
}

// What ranks say when job(rank, step) is called before each step of a training, which waits for each or runs ahead.
std::string said_when(const mesh_shape& mesh, const std::function<void(rank&, long)>& job, bool ahead = false) {
  const graph g = differentiate(refine(decoder(one_layer())));
  const byte_text text = text_for(g);
  const decision_graph d = decisions(g, parallel_blocks(g), mesh);
  std::mt19937 random(7);
  plan p = random_plan(g, mesh, d, random, sizeof(float));
  const std::unique_ptr<backend> on = streamed::gpus_with<streamed::host_products>(mesh, number::float32);
  on->lowered_for().complete(p.code, g);
  shared_batches batches(g, text);
  const auto train_so = [&](const std::function<void(rank&, long)>& before) {
    on->run([&](rank& r) {
      const std::unique_ptr<loaded_program> loaded = r.load(p.code, g, 3);
      for (long step = 1; step <= 6; ++step) {
        before(r, step);
        if (ahead) one_step_ahead(*loaded, p.code, batches, step);
        else one_step(*loaded, p.code, batches, step);
      }
      while (ahead && loaded->ended(true)) {}
    });
  };
  std::string said;
  try {
    train_so(job);
  } catch (const rank_failure& e) {
    said = e.what();
  }
  CHECK(said != "");
  CHECK(seen.misuses == 0);
  stand_in::fault.stream_broken = stand_in::none;
  CHECK_NOTHROW(train_so([](rank&, long) {}));  // the same threads serve again
  return said;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("programs in streams and graphs train to the bit as those that run at once, and count the same") {
  const graph g = differentiate(refine(decoder(one_layer())));
  for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2}), mesh_of({1, 2}), mesh_of({2, 1})})
    check_plans_as_at_once(g, mesh, 2, 4);
  check_plans_as_at_once(g, mesh_of({1, 1, 2}), 1, 3);
  check_plans_as_at_once(g, mesh_of({2, 2}), 2, 3);
}

TEST_CASE("what neighbours hand on does so in streams and graphs") {
  const graph g = scanned::model_of_scans(4);
  for (const int ranks : {2, 4}) {
    const mesh_shape mesh = mesh_of({ranks});
    program p = scanned::program_along_pieces(g, mesh, sizeof(float));
    check_as_at_once(
        p, g, mesh, [](long) { return batch{}; }, 4);
    CHECK(count_collectives(p, g).calls[static_cast<std::size_t>(collective_kind::all_scan)] > 2);
    CHECK(count_collectives(p, g).calls[static_cast<std::size_t>(collective_kind::shift)] > 2);
  }
}

TEST_CASE("micro-batches and clipping in streams and graphs") {
  transformer c = one_layer();
  c.batch = 2;
  training how;
  how.clip = 1;
  how.micro_batches = 2;
  const graph g = differentiate(refine(decoder(c)), how);
  for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2})}) check_plans_as_at_once(g, mesh, 2, 4);
}

TEST_CASE("state and what backward reads rest on the host, in streams and graphs too") {
  CHECK(check_plans_as_at_once(differentiate(refine(decoder(one_layer()))), mesh_of({2}), 4, 3, true) > 10);
}

TEST_CASE("stages of a pipeline in streams and graphs train to the bit as those that run at once, and count the same") {
  transformer c = one_layer();
  c.batch = 2;
  training how;
  how.clip = 1;
  how.micro_batches = 4;
  const graph forward = refine(decoder(c));
  const byte_text text(some_text(), 2, 8, 5, {.positions = true});
  train_options remember;
  remember.keep_changes = true;
  std::mt19937 random(7);
  for (const pipeline_schedule& s : {gpipe(2, 4), one_forward_one_backward(2, 4), interleaved(2, 2, 4),
                                     zero_bubble_h1(3, 4), chimera(2, 4), sequence_1f1b(2, 4, 2)}) {
    CAPTURE(s.name);
    sliced_graph cut{forward, random_cuts(forward, s.stages / s.slices, random)};
    if (s.slices > 1) cut = in_slices(forward, cut.first, "sequence", {3, 5});
    const graph g = differentiate(cut.g, how);
    const mesh_shape inside = mesh_of({s.count() == 2 ? 2 : 1});
    stand_in::reset();
    {
      const mesh_shape mesh = with_stages(inside, s.count());
      const std::unique_ptr<backend> here = streamed::gpus_with<streamed::host_products>(mesh, number::float32),
                                     at_once = emulated_gpus(mesh, number::float32);
      const decision_graph d = decisions(g, parallel_blocks(g), inside, axis_choice::regathered);
      const stage_programs p = lower_stages(g, inside, shard(g, d, random_choices(d, random)), {cut.first, s, {}},
                                            here->lowered_for(), {.overlap = s.count() == 2});
      const auto trained_on = [&](backend& on, std::vector<std::vector<traffic>>& sent) {
        sent.resize(static_cast<std::size_t>(mesh.devices()));
        shared_batches batches(p.g, text);
        on.run([&](rank& r) {
          const auto loaded = r.load(p.of(r.number()), p.g, 3);
          r.reset_counted();
          for (long step = 1; step <= 3; ++step) one_step(*loaded, p.of(r.number()), batches, step);
          sent[static_cast<std::size_t>(r.number())] = r.counted();
        });
        return train(on, p, text, 4, 3, remember);
      };
      std::vector<std::vector<traffic>> sent_here, sent_at_once;
      const trained a = trained_on(*here, sent_here), b = trained_on(*at_once, sent_at_once);
      CHECK(a.loss == b.loss);
      CHECK(a.change == b.change);
      CHECK(sent_here == sent_at_once);
      CHECK(seen.graphs > 0);
    }
    check_nothing_wrong();
  }
}

TEST_CASE("steps are issued while those before are on their way, at most two passes") {
  for (const int passes : {1, 2}) {
    CAPTURE(passes);
    stand_in::reset();
    transformer c = one_layer();
    c.batch = 4 / passes;
    training how;
    if (passes > 1) how.micro_batches = passes;
    const graph g = differentiate(refine(decoder(c)), how);
    const byte_text text(some_text(), c.batch, 8, 5);
    const mesh_shape mesh = mesh_of({1});
    {
      const std::unique_ptr<backend> on = streamed::gpus_with<streamed::host_products>(mesh, number::float32);
      program p = lower(g, mesh, sharding::replicated(g), all_operations(g), sizeof(float));
      on->lowered_for().complete(p, g);
      shared_batches batches(g, text);
      const trained known = train(*emulated_gpus(mesh, number::float32), p, g, text, 5, 3);
      on->run([&](rank& r) {
        const std::unique_ptr<loaded_program> loaded = r.load(p, g, 3);
        const int before = seen.asked;
        std::vector<double> loss;
        for (long step = 1; step <= 5; ++step) {
          one_step_ahead(*loaded, p, batches, step);
          // The host has asked for nothing before a third pass, and knows what is two passes back.
          CHECK((seen.asked > before) == (step * passes > 2));
          while (const auto known_now = loaded->ended(false)) loss.push_back(*known_now);
          CHECK(static_cast<long>(loss.size()) == std::max(0l, (step * passes - 2) / passes));
        }
        while (const auto last = loaded->ended(true)) loss.push_back(*last);
        CHECK(loss == known.loss);
        CHECK(!loaded->ended(true));
        one_step_ahead(*loaded, p, batches, 6);  // what is on its way ends before its memory does
      });
    }
    check_nothing_wrong();
  }
}

TEST_CASE("of a training that runs ahead every step is told, and it ends alike on all ranks") {
  const graph g = differentiate(refine(decoder(one_layer())));
  const byte_text text(some_text(), 4, 8, 5);
  const mesh_shape mesh = mesh_of({2});
  std::mt19937 random(7);
  plan p = random_plan(g, mesh, decisions(g, parallel_blocks(g), mesh), random, sizeof(float));
  stand_in::reset();
  {
    const std::unique_ptr<backend> on = streamed::gpus_with<streamed::host_products>(mesh, number::float32);
    on->lowered_for().complete(p.code, g);
    trainer t(*on, p.code, g, 3);
    std::vector<double> told;
    train_options how;
    long enough = 0;
    how.tell = [&](const step_report& r) {
      told.push_back(r.loss);
      CHECK(r.step == static_cast<long>(told.size()));
      return r.step != enough;
    };
    CHECK(t.run(text, 3, how).loss == told);
    REQUIRE(told.size() == 3);
    enough = 5;
    CHECK_THROWS_AS(t.run(text, 9, how), cancelled);
    CHECK(t.done() == 7);  // two were on their way
    CHECK(told.size() == 7);
    const batch_source short_of = [&](long number) { return number < 10 ? text(number) : batch{}; };
    CHECK_THROWS_AS(t.run(short_of, 9, how), bad_input);
    CHECK(t.done() == 9);
    CHECK(told.size() == 9);
    trainer unbroken(*on, p.code, g, 3);
    CHECK(unbroken.run(text, 9).loss == told);
  }
  check_nothing_wrong();
}

TEST_CASE("ranks agree in the library's algorithms, and no epilogue is refused") {
  const graph g = differentiate(refine(decoder(one_layer())));
  const byte_text text = text_for(g);
  const trained exact = train_on(single(g, sizeof(double)), g, text, 4, 3);
  using device = streamed::rank_gpu<bf16, cuda::matrix_library>;
  cfp::emulated::put_into_stream = &stand_in::later;
  for (const mesh_shape& mesh : {mesh_of({1}), mesh_of({2}), mesh_of({2, 2})}) {
    CAPTURE(to_string(mesh));
    stand_in::reset();
    const device::parts shared;
    const decision_graph d = decisions(g, parallel_blocks(g), mesh);
    std::mt19937 random(11);
    plan p = random_plan(g, mesh, d, random, sizeof(bf16));
    shared.lowered_for().complete(p.code, g);
    shared_batches batches(g, text);
    const auto ranks = static_cast<std::size_t>(mesh.devices());
    std::vector<std::vector<cuda::algorithm_choice>> chosen(ranks);
    std::vector<long> refused(ranks, -1);
    std::vector<double> loss(ranks);
    run_ranks(sizes(mesh), [&](rank_context& rank) {
      const auto me = static_cast<std::size_t>(rank.rank);
      device on(shared, rank);
      engine<device> run(p.code, g, on, 3);
      for (long step = 1; step <= 4; ++step) one_step(run, p.code, batches, step);
      loss[me] = run.loss();
      chosen[me] = on.library().choices();
      refused[me] = on.refused_epilogues();
    });
    CHECK(!chosen[0].empty());
    for (std::size_t r = 0; r < ranks; ++r) {
      CHECK(chosen[r] == chosen[0]);
      CHECK(refused[r] == 0);
      CHECK(std::abs(loss[r] - exact.loss[3]) <= 1e-3 * exact.loss[3]);
    }
    check_nothing_wrong();
  }
}

TEST_CASE("all operators that have no kernel on a GPU are named at once, loaded or asked for its memory") {
  stand_in::reset();
  model net;
  const tensor y = own_operators::turned(bent(net.weight("w", {{"batch", 4}, {"width", 8}}, {0, 1})));
  net.recorded.loss = op<"batch width, batch width -> ">{}(y, y).id;
  const graph g = differentiate(refine(net.recorded));
  const std::unique_ptr<backend> on = streamed::gpus(mesh_of({1}), number::float32, {});
  program p = single(g, sizeof(float));
  const auto says = Catch::Contains(
      "operators 'bent', 'turned' have no kernel for GPUs: add them with kernels.add<bent_t, turned_t>()");
  CHECK_THROWS_WITH(on->run([&](rank& r) { r.load(p, g, 3); }), says);
  CHECK_THROWS_WITH(beside_bytes(*on, p, g), says);
  check_nothing_wrong();
}

TEST_CASE("a rank that fails after its steps became graphs is reported by all, and nobody waits for ever") {
  for (const bool ahead : {false, true})
    for (const long when : {1, 2, 3, 5}) {
      stand_in::reset();
      CAPTURE(when, ahead);
      const std::string said = said_when(
          mesh_of({2, 2}),
          [&](rank& r, long step) {
            if (step == when && r.number() == 1) throw std::runtime_error("out of luck");
          },
          ahead);
      CHECK(contains(said, "rank 1 failed: out of luck"));
      for (const int r : {0, 2, 3}) CHECK(contains(said, "rank " + std::to_string(r) + " stopped in "));
      check_nothing_wrong();
    }
}

TEST_CASE("a rank that does not come is missed at the deadline, before and after steps became graphs") {
  for (const long when : {1, 4}) {
    stand_in::reset();
    CAPTURE(when);
    streamed::deadline = 1s;
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = said_when(
        mesh_of({2}),
        [&](rank& r, long step) {
          if (step == when && r.number() == 1) std::this_thread::sleep_for(3s);
        },
        when == 4);
    CAPTURE(said);
    CHECK(std::chrono::steady_clock::now() - begin < 30s);
    CHECK(contains(said, "rank 0 failed: "));
    CHECK(contains(said, " did not end within 1000 ms"));
    streamed::deadline = 20s;
    check_nothing_wrong();
  }
}

TEST_CASE("work that fails on a GPU in a graph reaches all") {
  for (const bool ahead : {false, true}) {
    stand_in::reset();
    const std::string said = said_when(
        mesh_of({2}),
        [&](rank& r, long step) {
          if (step == 3 && r.number() == 1) stand_in::fault.stream_broken = 1;
        },
        ahead);
    CHECK(contains(said, "rank 1 failed: "));
    CHECK(contains(said, "cudaErrorIllegalAddress"));
  }
}

TEST_CASE("a session plans, verifies, trains, compares, saves and goes on on GPUs of the stand-in") {
  stand_in::reset();
  {
    transformer model = one_layer();
    model.batch = 2;
    const byte_text text(some_text(), model.batch, model.sequence, 5);
    session_options options;
    options.mesh = "data=2";
    options.on = streamed::gpus;
    options.type = number::bfloat16;
    options.lazy = true;
    options.tolerance = 0.9;  // a kernel takes long here
    options.table = "streamed_table.json";
    std::filesystem::remove(options.table);
    session s(decoder(model), options);
    const int measured = s.plan().measured;
    std::ostringstream text_of_plan;
    text_of_plan << s.plan();
    CHECK(contains(text_of_plan.str(), "memory of a GPU: 1024.0 GiB, 0.0 taken by contexts, NCCL and libraries, "));
    CHECK(contains(s.plan().json(), "\"device_bytes\": 1099511627776"));
    const long library = static_cast<long>(cuda::matrix_library::workspace_bytes);
    CHECK(s.plan().taken_bytes > library + stand_in::gpu_size::context + 2 * stand_in::gpu_size::communicator);
    CHECK(s.plan().taken_bytes < 2 * library);
    CHECK(s.plan().best.beside_bytes > 0);
    CHECK(measured > 0);
    const verification v = s.verify(text, 3);
    INFO("losses apart by " << v.apart.loss << ", changes by " << v.apart.parameters << " of " << v.apart.worst);
    CHECK(v.holds());
    const training_report r = s.train(text, 3);
    REQUIRE(r.loss.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(std::abs(r.loss[i] - v.alone[i]) <= 1e-3 * v.alone[i]);
    const plan_comparison c = s.compare(text, 1);
    CHECK(c.counts_agree());
    for (const plan_comparison::entry& e : c.plans) CHECK(e.measured_peak <= e.predicted_peak);
    s.save_state("streamed_state.safetensors");
    // Another session plans from the table, measures nothing that is there again, and goes on.
    const auto table = [&] {
      profile_table out;
      REQUIRE(out.load(options.table) == "");
      return out;
    };
    CHECK(table().entries.size() == static_cast<std::size_t>(measured));
    session again(decoder(model), options);
    CHECK(again.plan().measured < measured);
    CHECK(table().entries.size() == static_cast<std::size_t>(measured + again.plan().measured));
    again.load_state("streamed_state.safetensors");
    const std::vector<double> gone_on = again.train(text, 2).loss, unbroken = s.train(text, 2).loss;
    REQUIRE(gone_on.size() == unbroken.size());
    for (std::size_t i = 0; i < unbroken.size(); ++i)  // its plan may be another one
      CHECK(std::abs(gone_on[i] - unbroken[i]) <= 1e-3 * unbroken[i]);
    CHECK(!table().choices.empty());
    for (const auto& [name, algorithm] : table().choices) CHECK(contains(name, cuda::matrix_library::name() + " "));
  }
  check_nothing_wrong();
}

TEST_CASE("a plan may take what is free of a GPU, and of what a rank may use what is not taken before") {
  const device_memory gpu{100, 60}, unknown;
  CHECK(gpu.taken() == 40);
  CHECK(gpu.limit(0) == 60);
  CHECK(gpu.limit(70) == 30);
  CHECK(gpu.limit(1000) == 60);
  CHECK(gpu.limit(30) == 0);
  CHECK(unknown.limit(0) == std::nullopt);
  CHECK(unknown.limit(5) == 5);
}

TEST_CASE("GPUs that cannot hold their part of the weights are refused before anything runs") {
  stand_in::reset();
  const long library = static_cast<long>(cuda::matrix_library::workspace_bytes);
  const auto refused_in = [&](long total, long memory) {
    stand_in::size_of_gpu.total = total;
    session_options options;
    options.mesh = "data=2";
    options.on = streamed::gpus;
    options.type = number::bfloat16;
    options.memory = memory;
    try {
      session(decoder(one_layer()), options).plan();
    } catch (const bad_input& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  for (const std::string& said : {refused_in(library + (4 << 20) + 10000, 0), refused_in(1l << 40, library)}) {
    CHECK(contains(said, ": no plan fits; weights and optimizer state alone, split over all ranks, need "));
    CHECK(contains(said, "; contexts, NCCL, libraries and others take "));
  }
  check_nothing_wrong();
}

TEST_CASE("what was chosen is chosen again, if it is of the same library") {
  cuda::blas_choices all;
  const std::map<std::string, long> kept{{"library 2 17", 1}, {"library 1 18", 1}, {"library 2 19", 7}};
  all.take(cuda::choices_named(kept, "library 2"));
  for (const std::uint64_t product : {17u, 18u, 19u}) {
    cuda::blas_choice& c = all.of(product);
    c.suggested.resize(3);
    all.recall(c);
    CHECK(c.chosen == (product == 17));
  }
  CHECK(cuda::named(all.made(), "library 2") == std::map<std::string, long>{{"library 2 17", 1}});
}

}  // namespace streamed_cases
