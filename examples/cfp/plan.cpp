#include "arguments.hpp"
#include "commands.hpp"

#include <cfp/file/new_file.hpp>

#if defined(CFP_WITH_GPUS)
#include <cfp/profile/gpu_here.hpp>
#endif

#include <iostream>

namespace program {

namespace {

using cfp::bad_input;

cfp::instruction_device gpu() {
#if defined(CFP_WITH_GPUS)
  return cfp::gpu_here();
#else
  throw std::runtime_error("this program was built without CUDA; install the CUDA toolkit and build it again");
#endif
}

const std::string nothing = "--machine simulates and runs nothing: leave out ";

// Plans for a machine that is described, on all its meshes or the one given; nothing is trained.
int plan_for_machine(const arguments& a) {
  if (a.is_given("--axes") && a.is_given("--mesh"))
    throw bad_input("--axes: it says which meshes are tried, and --mesh is the only one; leave one out");
  if (a.backend == "mpi") throw bad_input(nothing + "--backend mpi");
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  arguments sized = a;  // what people train there, unless said otherwise
  if (!a.is_given("--batch")) sized.batch = 4l * m.devices();
  if (!a.is_given("--seq")) sized.sequence = 1024;
  const long rows = rows_of(sized.batch, a.micro_batches);
  const bool folded = a.save_plan.empty() && a.save_header.empty();
  const made_model net = make_model(sized, rows, a.layers, m.devices(), folded);
  cfp::machine_plan_options o = a.machine_plan();
  o.name = a.model + " " + net.sizes;
  if (a.explain) o.curve = 12;
  if (a.backend == "cuda") {
    try {
      o.measure_on = gpu();
    } catch (const cfp::error& e) {
      throw bad_input(std::string("--backend cuda: ") + e.what());
    }
  }
  const cfp::machine_plan found = cfp::plan_for(net.forward, m, o);
  clear_progress();
  say_model(a, net, a.micro_batches > 1 ? ", in each of " + std::to_string(a.micro_batches) + " micro-batches" : "");
  std::cout << found;
  if (!found.fits())
    throw bad_input(found.unfit + "; take more --memory (bytes)" +
                    (a.recompute == "none" ? ", leave out --recompute" : "") +
                    ", a smaller --batch, more --micro-batches, another --machine or --optimizer" +
                    (o.type == cfp::number::float32 ? ", or --type bfloat16" : ""));
  if (!a.summary.empty()) cfp::write_file(a.summary, found.json());
  if (!a.save_plan.empty()) found.save_plan(a.save_plan);
  if (!a.save_header.empty()) found.save_header(a.save_header);
  return 0;
}

}  // namespace

int plan(const arguments& a) {
  for (const char* const option :
       {"--plan", "--against", "--profile-mode", "--tolerance", "--deadline", "--share-gpus"})
    if (!a.machine.empty() && a.is_given(option)) throw bad_input(nothing + option);
  if (!a.machine.empty()) return a.stages.empty() ? plan_for_machine(a) : plan_in_stages(a);
  for (const char* const option : {"--stages", "--axes", "--recompute", "--unfused", "--seconds", "--together"})
    if (a.is_given(option))
      throw bad_input(std::string(option) + ": it is of a machine that is described, give --machine too");
  prepared p = prepare(a);
  introduce(p, a);
  const cfp::found_plan& found = plan_and_print(p, a);
  save(p, a);
  save_summary(p, a, found.json());
  return 0;
}

}  // namespace program
