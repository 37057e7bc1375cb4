// cfp: plans models, verifies the plans, trains under them, compares them. `cfp --help` lists its commands.
#include "cfp/arguments.hpp"
#include "cfp/commands.hpp"
#include "cfp/ranks.hpp"
#include "cfp/report.hpp"

#include <CLI/CLI.hpp>

#include <charconv>

namespace {

using program::arguments;

void add_model(CLI::App& app, arguments& a) {
  app.add_option("--model", a.model,
                 "a model of examples/models by name, or a configuration file of a public model, or its directory")
      ->capture_default_str();
  app.add_option("--layers", a.layers, "layers; of a model by name 2 unless given, else as the configuration has")
      ->check(CLI::Range(1l, 10000l));
  app.add_option("--batch", a.batch, "sequences per step")->check(CLI::Range(1l, 1000000l))->capture_default_str();
  app.add_option("--micro-batches", a.micro_batches, "pieces a step's batch comes in; their gradients are added up")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--seq", a.sequence, "tokens per sequence")->check(CLI::Range(1l, 1000000l))->capture_default_str();
  app.add_option("--vocabulary", a.vocabulary, "do not pad the vocabulary to a multiple of 128 but take this size");
}

void add_type(CLI::App& app, arguments& a, const char* words, bool has_default) {
  CLI::Option& type = *app.add_option("--type", a.type, words)->check(CLI::IsMember({"float32", "bfloat16"}));
  if (has_default) type.capture_default_str();
}

void add_ranks(CLI::App& app, arguments& a) {
  app.add_option("--backend", a.backend,
                 "what ranks are: threads of this program; processes that mpirun starts, one per device of the mesh "
                 "(mpi); threads with an NVIDIA GPU each, or such processes where torchrun, mpirun or srun starts "
                 "several (cuda); threads that emulate one (emulated)")
      ->check(CLI::IsMember({"threads", "mpi", "cuda", "emulated"}))
      ->capture_default_str();
  app.add_option("--mesh", a.mesh, "ranks along named axes, for example data=2 or data=2,model=2")
      ->capture_default_str();
  app.add_option("--deadline", a.deadline, "seconds that a rank waits for others before it fails")
      ->check(CLI::Range(1e-3, 1e9))
      ->capture_default_str();
  app.add_flag("--share-gpus", a.share_gpus,
               "with --backend cuda: more processes than GPUs, to see that what they compute is right; times are none");
}

// "2%" as 0.02; -1 where it is none.
double percent(const std::string& share) {
  const char* const end = share.data() + share.size() - (share.ends_with('%') ? 1 : 0);
  double out = 0;
  const auto [at, wrong] = std::from_chars(share.data(), end, out);
  const bool is = wrong == std::errc() && at == end && (end[0] == '%' || out == 0) && out >= 0 && out <= 100;
  return is ? out / 100 : -1;
}

void add_planning(CLI::App& app, arguments& a) {
  app.add_option("--memory", a.memory, "most bytes a rank may use")->check(CLI::Range(1l, 1l << 50));
  app.add_option("--profile-mode", a.profile_mode,
                 "measure everything (full), or only what plans that may be the best use (lazy, unless --explain)")
      ->check(CLI::IsMember({"full", "lazy"}));
  app.add_option_function<std::string>(
         "--tolerance", [&a](const std::string& share) { a.tolerance = percent(share); },
         "how much slower than the best a lazily measured plan may be; 0: not at all")
      ->check([](const std::string& share) {
        return percent(share) >= 0 ? std::string() : "it is a share such as 2%, from 0% to 100%, got: " + share;
      })
      ->default_str("2%");
  app.add_option("--profile", a.profile, "table of measured times to read and extend");
  app.add_option("--plan", a.plan, "take a saved plan, measuring nothing");
  app.add_option("--against", a.against, "a saved plan to run and compare beside those people use");
  app.add_option("--save-plan", a.save_plan, "write the found plan");
  app.add_option("--save-header", a.save_header, "write the found plan as a C++ header that the compiler checks");
  app.add_flag("--explain", a.explain, "say what else each decision could do, and where other plans lose");
  app.add_option("--summary", a.summary, "write the summary as JSON");
}

void add_sweep(CLI::App& app, arguments& a) {
  app.add_option("--save-machine", a.save_machine, "write the machine's file, for cfp plan --machine FILE");
  app.add_option("--seconds", a.seconds, "for each size; those that would take longer are left out")
      ->check(CLI::Range(1e-3, 1e4))
      ->capture_default_str();
  app.add_option("--most", a.most, "bytes of the largest collective")
      ->check(CLI::Range(1024l, 1l << 40))
      ->capture_default_str();
  app.add_option("--memory", a.memory, "bytes a program may use of a device; unless given the host's over its ranks")
      ->check(CLI::Range(1l, 1l << 50));
}

void add_training(CLI::App& app, arguments& a) {
  app.add_option("--steps", a.steps, "training steps")->check(CLI::Range(0l, 100000l))->capture_default_str();
  app.add_option("--rate", a.rate, "learning rate after the warm-up")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  app.add_option("--schedule", a.schedule,
                 "steps of warm-up, and the step at which a cosine reaches a tenth of the rate (0: never)")
      ->expected(2)
      ->delimiter(',')
      ->check(CLI::Range(0l, 1000000000l))
      ->capture_default_str();
  app.add_option("--clip", a.clip, "most the norm of all gradients may be (0: any)")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  app.add_option("--text", a.text, "file whose bytes are the tokens");
  app.add_option("--save-state", a.save_state, "write weights and optimizer state after the steps (safetensors)");
  app.add_option("--load-state", a.load_state, "go on from such a file, whatever mesh it was written on");
  app.add_option("--seed", a.seed, "of initial weights and batches")->capture_default_str();
}

struct command {
  const char* name;
  const char* description;
  int (*run)(const arguments&);
  bool plans, trains, compares, describes, sweeps = false;
};
constexpr command commands[] = {
    {"run", "find a plan, verify it against one rank and compare it with the plans people use", &program::run, true,
     true, true, false},
    {"plan", "find a plan, for ranks here or (--machine) for a machine that is described", &program::plan, true, false,
     false, true},
    {"verify", "find a plan, and train some steps under it and on one rank: both must come to the same",
     &program::verify, true, true, false, false},
    {"train", "find a plan and train under it", &program::train, true, true, false, false},
    {"compare", "find a plan and run it in turn with those people use", &program::compare, true, true, true, false},
    {"analyse", "show blocks, segments, strategies and what known plans need, and run nothing", &program::analyse, true,
     false, false, false},
    {"explain", "find a plan; say what else each decision could do, and where other plans lose", &program::explain,
     true, false, false, false},
    {"sweep", "measure the machine here: products, memory, collectives; its file plans for machines like it",
     &program::sweep, false, false, false, false, true},
    {"export", "write a saved plan (--plan) in another form", &program::export_plan, true, false, false, false},
};

int main_of(const command& c, const arguments& a) {
  try {
    return program::run_command(c.run, a);
  } catch (...) {
    return program::report();
  }
}

}  // namespace

/// 0: all well; 1: a promise was broken; 2: bad input.
int main(int argc, char** argv) {
  arguments a;
  CLI::App app{
      "cfp: splits the training of large models over devices. It finds the fastest plan from measurements, proves "
      "it right by running it, and compares it with the plans people use."};
  app.require_subcommand(1);
  for (const command& c : commands) {
    CLI::App& sub = *app.add_subcommand(c.name, c.description);
    if (!c.sweeps) add_model(sub, a);
    add_type(sub, a,
             c.sweeps ? "what numbers are stored as, in products and collectives; unless given bfloat16, and products "
                        "also in float32"
                      : "what numbers are stored as; weights, sums and optimizer state are float32 either way",
             !c.sweeps);
    add_ranks(sub, a);
    if (c.sweeps) add_sweep(sub, a);
    if (c.plans) add_planning(sub, a);
    if (c.trains) add_training(sub, a);
    if (c.run == &program::train)
      sub.add_option("--save-every", a.save_every, "steps after which --save-state writes, over what it wrote before")
          ->check(CLI::Range(1l, 100000l));
    if (c.compares)
      sub.add_option("--compare", a.compare, "steps of each plan in the comparison")
          ->check(CLI::Range(0, 100000))
          ->capture_default_str();
    if (!c.describes) continue;
    sub.add_option("--machine", a.machine,
                   "a machine of examples/machines by name, or a file of that format: simulate, run nothing. Unless "
                   "said otherwise of all layers, 4 sequences of 1024 for each of its devices, in bfloat16, on every "
                   "mesh of one or two axes. With --backend cuda the GPU here tells what operators take");
    sub.add_flag("--unfused", a.unfused, "with --machine: every operator by itself, not as kernels for GPUs fuse them");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  for (int i = 1; i < argc; ++i) a.all.append(argv[i]).append(1, '\n');
  for (const command& c : commands) {
    const CLI::App& sub = *app.get_subcommand(c.name);
    if (!sub.parsed()) continue;
    const auto given = [&](const char* option) {
      const CLI::Option* const o = sub.get_option_no_throw(option);
      return o != nullptr && o->count() > 0;
    };
    a.batch_given = given("--batch");
    a.sequence_given = given("--seq");
    a.type_given = given("--type");
    a.mesh_given = given("--mesh");
    return main_of(c, a);
  }
  return 2;
}
