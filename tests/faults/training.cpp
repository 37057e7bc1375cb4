#include "training.hpp"

#include "moment.hpp"
#include "ranks.hpp"

#include <cfp/backend/backend.hpp>
#include <cfp/communicator/rank_failure.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/differentiate.hpp>
#include <cfp/model/model.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/model/refine.hpp>
#include <cfp/op/catalogue.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/program/lower.hpp>
#include <cfp/session/first_process.hpp>
#include <cfp/session/train.hpp>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(CFP_FAULTS_MPI)
#include <cfp/communicator/mpi/run_processes.hpp>
#endif

namespace faults {

namespace {

constexpr long rows = 4, length = 8;

// What people run on such a mesh: all of them communicate in every part of a step.
void write_usual_plan(cfp::session& s, const task& t) {
  const cfp::graph& g = s.training_graph();
  const cfp::mesh_shape mesh = cfp::read_mesh(t.mesh);
  const cfp::decision_graph all = cfp::decisions(g, cfp::parallel_blocks(g), mesh, cfp::axis_choice::scattered);
  for (const cfp::named_plan& n : cfp::usual_plans(mesh, false)) {
    if (n.name != "zero2" && n.name != "zero2+tensor") continue;
    std::vector<int> choices = cfp::follow(n, all, mesh);
    for (int& c : choices) c = std::max(c, 0);
    cfp::write_file(t.plan, cfp::to_json(cfp::realise(n.name, g, mesh, all, choices), g, mesh, all, "tiny").dump(1));
  }
}

void print_moments() {
  for (std::size_t r = 0; r < passed.size(); ++r)
    for (std::size_t k = 0; k < kinds.size(); ++k)
      if (passed[r][k] > 0) std::printf("moments %zu %zu %ld\n", r, k, passed[r][k].load());
}

void run(const task& t) {
  cfp::families::model_sizes sizes;
  sizes.batch = rows;
  sizes.sequence = length;
  sizes.layers = 1;
  sizes.least_groups = 2;
  const cfp::families::built_model net =
      cfp::families::build_model(cfp::families::config_file(CFP_SOURCE_DIR "/tests/tiny_gpt.json"), sizes);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i * i % 26);
  const cfp::families::byte_text batches(text, rows, length, 1, net.inputs);
  cfp::session_options o{.mesh = t.mesh, .on = ranks_of(t.world), .name = "tiny"};
  o.deadline = planned.deadline;
  cfp::session s(net.forward, o);
  cfp::in_first_process(s.ranks(), [&] {
    if (!std::filesystem::exists(t.plan)) write_usual_plan(s, t);
  });
  s.use_plan(t.plan);
  const std::string state = t.folder + "/state";
  if (std::filesystem::exists(state)) s.load_state(state);
  for (long at = s.train(batches, 0).last; at < steps;) {
    const cfp::training_report r = s.train(batches, 1);
    at = r.last;
    if (s.ranks().is_first()) std::printf("step %ld loss %a\n", at, r.loss.back());
    std::fflush(stdout);
    s.save_state(state);
    if (t.keep_all && s.ranks().is_first()) std::filesystem::create_hard_link(state, state + "." + std::to_string(at));
    s.save_plan(t.folder + "/plan");
    print_moments();
    std::fflush(stdout);
  }
}

int ended(int code, const char* why) {
  std::fprintf(stderr, "ended at %.3f: %s\n", now(), why);
  std::fflush(stderr);
  return code;
}

}  // namespace

int train(const task& t) {
#if defined(CFP_FAULTS_MPI)
  std::unique_ptr<cfp::process_job> job;
  if (t.world == "mpi") job = std::make_unique<cfp::process_job>();
#endif
  try {
    run(t);
    return 0;
  } catch (const cfp::bad_input& e) {
    return ended(2, e.what());
  } catch (const std::exception& e) {
    return ended(1, e.what());
  }
}

// Every process is told where data end at different steps, under a plan that sends nothing, and where the callback of
// one throws: none waits for another.
int end_apart(const std::string& world, int ranks) {
#if defined(CFP_FAULTS_MPI)
  std::unique_ptr<cfp::process_job> job;
  if (world == "mpi") job = std::make_unique<cfp::process_job>();
#endif
  cfp::model net;
  const cfp::tensor x = net.input("x", {{"batch", 4}, {"width", 8}}, cfp::element::real, {});
  const cfp::tensor y = cfp::linear(x, net.weight("w", {{"width", 8}, {"out", 2}}, {0, 1}));
  net.recorded.loss = cfp::op<"batch out, batch out -> ">{}(y, y).id;
  const cfp::graph g = cfp::differentiate(cfp::refine(net.recorded));
  const cfp::mesh_shape mesh = cfp::read_mesh("data=" + std::to_string(ranks));
  const std::unique_ptr<cfp::backend> on = ranks_of(world)(mesh, cfp::number::float32, {});
  cfp::program p = cfp::lower(g, mesh, cfp::sharding::replicated(g), cfp::all_operations(g), sizeof(float));
  on->lowered_for().complete(p, g);
  int mine = 0, wrong = 0;
  on->run([&](cfp::rank& r) { mine = r.number(); });
  cfp::trainer t(*on, p, g, 1);
  const auto says = [&](long last, const std::string& words, const cfp::train_options& how = {}) {
    std::string said = "nothing is refused";
    try {
      t.run(
          [last](long step) {
            if (step > last) throw std::runtime_error("no data for step " + std::to_string(step));
            return cfp::batch{{"x", std::vector<float>(32, 0.1f)}};
          },
          5, how);
    } catch (const std::exception& e) {
      said = e.what();
    }
    if (said.find(words) != std::string::npos) return;
    std::printf("rank %d: expected '%s', got: %s\n", mine, words.c_str(), said.c_str());
    wrong = 1;
  };
  says(5, "nothing is refused");
  cfp::train_options how;
  how.tell = [](const cfp::step_report&) -> bool { throw std::runtime_error("no more"); };
  says(9, mine == 0 ? "no more" : "stopped, as the callback said", how);  // in all of them what was trained is kept
  if (t.done() != 6) wrong = 1;
  says(7, "no data for step 8");
  if (t.done() != 7) wrong = 1;
  const std::string apart = "failed: processes have data for different steps, some to step 7, others to step " +
                            std::to_string(6 + ranks) + ": the source of batches must give the same in all of them";
  says(7 + mine, apart);
  says(99, apart);  // and from then on
  return wrong;
}

}  // namespace faults
