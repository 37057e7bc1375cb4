#include "arguments.hpp"
#include "commands.hpp"
#include "described.hpp"

#include <cfp/session/print_terms.hpp>

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

}  // namespace

// On all its meshes or the one given; nothing is trained.
described_plan plan_there(const arguments& a, bool folded) {
  if (a.is_given("--axes") && a.is_given("--mesh"))
    throw bad_input("--axes: it says which meshes are tried, and --mesh is the only one; leave one out");
  if (a.backend == "mpi") throw bad_input(nothing + "--backend mpi");
  const cfp::machine m = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  described_plan out{a, {}, {}};
  if (!a.is_given("--batch")) out.sized.batch = 4l * m.devices();
  if (!a.is_given("--seq")) out.sized.sequence = 1024;
  const auto model = [&](long rows) { return make_model(out.sized, rows, a.layers, m.devices(), folded); };
  const bool chosen = a.micro_batches == 0 && a.plan.empty();
  out.net = model(chosen ? out.sized.batch : rows_of(out.sized.batch, a.micro_batches));
  cfp::machine_plan_options o = a.machine_plan();
  o.name = a.model + " " + out.net.sizes;
  if (a.explain) o.curve = 12;
  if (a.backend == "cuda") {
    try {
      o.measure_on = gpu();
    } catch (const cfp::error& e) {
      throw bad_input(std::string("--backend cuda: ") + e.what());
    }
  }
  if (chosen) {
    out.found = cfp::plan_for([&](long rows) { return model(rows).forward; }, out.sized.batch, m, o);
    out.net = model(out.sized.batch / out.found.micro_batches);
    out.found.model = a.model + " " + out.net.sizes;
  } else {
    out.found = a.plan.empty() ? cfp::plan_for(out.net.forward, m, o) : cfp::price_saved(out.net.forward, m, a.plan, o);
  }
  clear_progress();
  return out;
}

std::string how_to_train(const arguments& sized, const std::string& mesh, int micro_batches, const std::string& type) {
  return "\nto train under it, with the same model and batch: cfp train --plan " + sized.save_plan + "\n  --mesh " +
         mesh + " --micro-batches " + std::to_string(micro_batches) + " --batch " + std::to_string(sized.batch) +
         " --seq " + std::to_string(sized.sequence) + " --type " + type + '\n';
}

void check_fits(const arguments& a, const cfp::machine_plan& found) {
  if (!found.fits())
    throw bad_input(found.unfit + "; take more --memory (bytes)" +
                    (a.recompute == "none" ? ", leave out --recompute" : "") + ", a smaller --batch, " +
                    (a.micro_batches > 0 ? "more --micro-batches (0: as many as take least), " : "") +
                    "another --machine or --optimizer" +
                    (a.machine_plan().type == cfp::number::float32 ? ", or --type bfloat16" : ""));
}

void check_planning(const arguments& a) {
  for (const char* const option : {"--against", "--profile-mode", "--tolerance", "--deadline", "--share-gpus"})
    if (!a.machine.empty() && a.is_given(option)) throw bad_input(nothing + option);
  for (const char* const option : {"--stages", "--axes", "--recompute", "--unfused", "--seconds", "--together"})
    if (a.machine.empty() && a.is_given(option))
      throw bad_input(std::string(option) + ": it is of a machine that is described, give --machine too");
}

namespace {

int plan_for_machine(const arguments& a) {
  const described_plan there = plan_there(a, a.save_plan.empty() && a.save_header.empty());
  const cfp::machine_plan& found = there.found;
  std::cout << a.model << ": " << there.net.sizes
            << (found.micro_batches > 1 ? ", in each of " + std::to_string(found.micro_batches) + " micro-batches\n"
                                        : "\n");
  say_decided(there.net);
  std::cout << found;
  check_fits(a, found);
  if (a.explain && found.is_whole()) std::cout << '\n' << cfp::terms_text(found.terms());
  answer(a, found.json());
  if (!a.save_header.empty()) found.save_header(a.save_header);
  if (a.save_plan.empty()) return 0;
  found.save_plan(a.save_plan);
  if (a.micro_batches == 0)
    std::cout << how_to_train(there.sized, found.meshes.front().mesh, found.micro_batches, found.type);
  return 0;
}

}  // namespace

int plan(const arguments& a) {
  for (const char* const option : {"--budget", "--tokens", "--least"})
    if (a.fleet.empty() && a.is_given(option))
      throw bad_input(std::string(option) + ": it is of several machines to choose among, give --fleet too");
  if (!a.lengths.empty() || !a.then.empty()) return plan_course(a);
  if (!a.fleet.empty()) return plan_in_fleet(a);
  if (!a.machine.empty() && a.is_given("--plan")) throw bad_input(nothing + "--plan");
  check_planning(a);
  if (!a.machine.empty()) return a.stages.empty() ? plan_for_machine(a) : plan_in_stages(a);
  prepared p = prepare(a);
  introduce(p, a);
  const cfp::found_plan& found = plan_and_print(p, a);
  save(p, a);
  save_summary(p, a, found.json());
  return 0;
}

}  // namespace program
