#include "training.hpp"

#include "moment.hpp"
#include "ranks.hpp"

#include <cfp/backend/backend.hpp>
#include <cfp/communicator/rank_failure.hpp>
#include <cfp/export/plan_file.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/families.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/model/read_mesh.hpp>
#include <cfp/plan/usual_plans.hpp>
#include <cfp/session/first_process.hpp>

#include <cstdio>
#include <filesystem>

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

}  // namespace faults
