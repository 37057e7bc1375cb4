// cfp: plans models, verifies the plans, trains under them, compares them. `cfp --help` lists its commands.
#include "cfp/arguments.hpp"
#include "cfp/commands.hpp"
#include "cfp/completion.hpp"
#include "cfp/ranks.hpp"
#include "cfp/report.hpp"
#include "cfp/values.hpp"

#include <cfp/pipeline/named_schedules.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using program::arguments;
using program::within;

// `chooses`: how many micro-batches, where that is 0.
void add_model(CLI::App& app, arguments& a, bool chooses) {
  app.add_option("--model", a.model,
                 "a model of examples/models by name, or a configuration file of a public model, or its directory; or "
                 "a graph: a "
                 "file .onnx, or .hlo")
      ->capture_default_str();
  app.add_option("--layers", a.layers, "layers; of a model by name 2 unless given, else as the configuration has")
      ->check(within(1l, 10000l));
  app.add_option("--batch", a.batch, "sequences per step")->check(within(1l, 1000000l))->capture_default_str();
  app.add_option("--micro-batches", a.micro_batches,
                 std::string("pieces a step's batch comes in; their gradients are added up") +
                     (chooses ? "; 0: with --machine those that take least, of 1, 2, 4, ..." : ""))
      ->check(within(chooses ? 0 : 1, 100000))
      ->capture_default_str();
  app.add_option("--seq", a.sequence, "tokens per sequence")->check(within(1l, 1000000l))->capture_default_str();
  app.add_option(
         "--pieces", a.pieces,
         "attention takes the sequence in so many pieces, whose keys and values go from neighbour to neighbour: "
         "ring attention, or the halo of a window")
      ->check(within(1l, 256l));
  app.add_option("--dim", a.dims, "of a graph: the size of a dimension that has a symbol in its file, NAME=SIZE");
  app.add_option("--loss", a.loss, "of a graph: what the loss is made of, unless given its first output of numbers");
  app.add_option("--inputs", a.inputs, "of an HLO graph: parameters that are no weights, by name or number")
      ->delimiter(',');
  app.add_option("--vocabulary", a.vocabulary, "do not pad the vocabulary to a multiple of 128 but take this size")
      ->check(within(1l, 2147483647l));
}

void add_type(CLI::App& app, arguments& a, const char* words, bool has_default) {
  CLI::Option& type = *app.add_option("--type", a.type, words)->check(CLI::IsMember({"float32", "bfloat16"}));
  if (has_default) type.capture_default_str();
}

template <class Names>
std::vector<std::string> listed(const Names& names) {
  return {names.begin(), names.end()};
}

void add_optimizer(CLI::App& app, arguments& a) {
  app.add_option("--optimizer", a.optimizers,
                 "AdamW with moments of 32, 16 or 8 bits, or Adafactor; with --machine of several, separated by "
                 "commas, the one of the fastest plan")
      ->delimiter(',')
      ->check(CLI::IsMember(listed(cfp::optimizer_names)))
      ->capture_default_str();
  app.add_option("--gradients", a.gradients,
                 "what sums of gradients may be sent as, where that takes less time: in 16 or 8 bits, or the largest 8 "
                 "of each 256; what is lost is added to the next step's")
      ->check(CLI::IsMember(listed(cfp::compression_names)))
      ->capture_default_str();
}

void add_mesh(CLI::App& app, arguments& a) {
  app.add_option("--mesh", a.mesh, "ranks along named axes, for example data=2 or data=2,model=2")
      ->capture_default_str();
}

void add_ranks(CLI::App& app, arguments& a) {
  app.add_option("--backend", a.backend,
                 "what ranks are: threads of this program; processes that mpirun starts, one per device of the mesh "
                 "(mpi); threads with an NVIDIA GPU each, or such processes where torchrun, mpirun or srun starts "
                 "several (cuda); threads that emulate one (emulated)")
      ->check(CLI::IsMember({"threads", "mpi", "cuda", "emulated"}))
      ->capture_default_str();
  app.add_option("--deadline", a.deadline, "seconds that a rank waits for others before it fails")
      ->check(within(1e-3, 1e9))
      ->capture_default_str();
  app.add_flag("--share-gpus", a.share_gpus,
               "with --backend cuda: more processes than GPUs, to see that what they compute is right; times are none");
}

void add_memory(CLI::App& app, arguments& a) {
  app.add_option("--memory", a.memory, "most bytes a rank may use, such as 16GiB")->transform(program::bytes());
}

void add_measuring(CLI::App& app, arguments& a) {
  app.add_option("--profile-mode", a.profile_mode,
                 "measure everything (full), or only what plans that may be the best use (lazy, unless --explain)")
      ->check(CLI::IsMember({"full", "lazy"}));
  app.add_option_function<std::string>(
         "--tolerance", [&a](const std::string& share) { a.tolerance = program::percent(share); },
         "how much slower than the best a lazily measured plan may be; 0: not at all")
      ->check([](const std::string& share) {
        return program::percent(share) >= 0 ? std::string()
                                            : "it is a share such as 2%, from 0% to 100%, got: " + share;
      })
      ->default_str("2%");
  app.add_option("--profile", a.profile, "table of measured times to read and extend");
  app.add_option("--against", a.against, "a saved plan to run and compare beside those people use");
  app.add_flag("--explain", a.explain,
               "say what else each decision could do, where other plans lose, and what memory is worth; with --machine "
               "the last alone");
}

void add_saved_plans(CLI::App& app, arguments& a) {
  app.add_option("--plan", a.plan, "take a saved plan, measuring nothing");
  app.add_option("--save-plan", a.save_plan, "write the found plan");
  app.add_option("--save-header", a.save_header, "write the found plan as a C++ header that the compiler checks");
}

void add_report(CLI::App& app, arguments& a) {
  app.add_option("--plan,plan", a.plan, "with --machine: a saved plan of this model, in the place of the one found");
  app.add_option("-o,--output", a.output, "the page to write, one file that any browser opens");
  app.add_option("--trace", a.trace, "write the timeline too, for Perfetto and chrome://tracing");
}

void add_export(CLI::App& app, arguments& a) {
  app.add_option("plan,--plan", a.plan,
                 "a saved plan; unless given, the model, its sizes and the mesh are those it names");
  app.add_option("--to", a.to, "what the plan is written for; header: C++ that the compiler checks")
      ->check(CLI::IsMember(program::export_targets()));
  app.add_option("-o,--output", a.output, "the file to write");
  app.add_option(
      "--machine", a.machine,
      "a machine by name, or a file: where plans are priced that a target has in the place of one that it has "
      "not");
}

void add_summary(CLI::App& app, arguments& a) { app.add_option("--summary", a.summary, "write the summary as JSON"); }

void add_machine(CLI::App& app, arguments& a) {
  app.add_option("--machine", a.machine,
                 "a machine of examples/machines by name, or a file of that format: simulate, run nothing. Unless "
                 "said otherwise of all layers, 4 sequences of 1024 for each of its devices, in bfloat16, on every "
                 "mesh of one or two axes. With --backend cuda the GPU here tells what operators take");
  app.add_option("--stages", a.stages,
                 "with --machine: plan in stages of a pipeline, on so many places along them, or several separated by "
                 "commas of which the fastest is taken; 0: any. The batch is cut into the micro-batches that take "
                 "least, unless --micro-batches says how many")
      ->delimiter(',')
      ->check(within(0, 4096));
  app.add_option("--axes", a.axes, "with --machine and no mesh: most axes of the meshes that are tried")
      ->check(within(1, 3))
      ->capture_default_str();
  app.add_option("--seconds", a.plan_seconds,
                 "with --machine: no more is begun after these, and the best known by then is the answer; without it "
                 "what is found depends on no clock")
      ->check(within(1e-3, 1e6));
  app.add_option("--together", a.together,
                 "with --machine and three axes: up to so many strategies they are solved together, which says "
                 "how near a plan is to the best")
      ->check(within(0.0, 1e9));
  app.add_option("--recompute", a.recompute,
                 "with --machine: what plans may compute again for backward, not to keep it: what the search chooses "
                 "where plans that keep all do not fit, none, or all, as a plan to compare with")
      ->check(CLI::IsMember({"where-needed", "none", "all"}))
      ->capture_default_str();
  app.add_flag("--unfused", a.unfused, "with --machine: every operator by itself, not as kernels for GPUs fuse them");
}

void add_course(CLI::App& app, arguments& a) {
  app.add_option("--lengths", a.lengths,
                 "with --machine: plans for sequences of these lengths, separated by commas, each priced for all of "
                 "them, as many tokens a step (--batch times --seq), and what it takes to change")
      ->delimiter(',')
      ->check(within(1, 1 << 24));
  app.add_option("--then", a.then,
                 "with --machine: plans for what it may become, machines by name or file, separated by commas; "
                 "NAME:DEVICES is a part of one. Each is priced on all of them, and what it takes to change")
      ->delimiter(',');
}

void add_fleet(CLI::App& app, arguments& a) {
  app.add_option("--fleet", a.fleet,
                 "machines with prices, of examples/fleets by name or a file of that format: plan for parts of all of "
                 "them, and say which none beats in time and money");
  app.add_option("--budget", a.budget, "with --fleet: most that all devices may cost in an hour")
      ->check(within(1e-9, 1e12));
  app.add_option("--tokens", a.tokens_in_all, "with --fleet: tokens of all the training, such as 1e12")
      ->check(within(1.0, 1e18));
  app.add_option("--least", a.least, "with --fleet: what the plan that is printed and saved has least of")
      ->check(CLI::IsMember({"time", "money", "devices"}))
      ->capture_default_str();
}

void add_sweep(CLI::App& app, arguments& a) {
  app.add_option("--save-machine", a.save_machine, "write the machine's file, for cfp plan --machine FILE");
  app.add_option("--seconds", a.seconds, "for each size; those that would take longer are left out")
      ->check(within(1e-3, 1e4))
      ->capture_default_str();
  app.add_option("--most", a.most, "bytes of the largest collective")
      ->check(within(1024l, 1l << 40))
      ->capture_default_str();
  app.add_option("--memory", a.memory, "bytes a program may use of a device; unless given the host's over its ranks")
      ->transform(program::bytes());
}

void add_schedule(CLI::App& app, arguments& a) {
  app.add_option("schedule", a.pipeline, cfp::schedule_names() + ", or a file that --save-schedule wrote")
      ->capture_default_str();
  app.add_option("--ranks", a.ranks, "ranks, one stage each unless the schedule has more")
      ->check(within(1, 4096))
      ->capture_default_str();
  app.add_option("--micro-batches", a.micro_batches, "pieces a step's batch comes in; unless given twice the ranks")
      ->check(within(1, 100000));
  app.add_option("--chunks", a.chunks, "stages of a rank, if interleaved")
      ->check(within(1, 1000))
      ->capture_default_str();
  app.add_option("--slices", a.slices, "parts of a micro-batch's sequence, if terapipe or seq1f1b")
      ->check(within(1, 1000))
      ->capture_default_str();
  app.add_option("--forward", a.forward, "milliseconds of a stage and a micro-batch, or a slice of it")
      ->check(within(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--backward", a.backward, "the same of its backward; half of it for inputs, where that is apart")
      ->check(within(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--send", a.send, "milliseconds from a rank to the next")
      ->check(within(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--svg", a.svg, "write it as a picture");
  app.add_option("--save-schedule", a.save_schedule, "write it as a file, to change and give as SCHEDULE");
}

void add_training(CLI::App& app, arguments& a) {
  app.add_option("--rate", a.rate, "learning rate after the warm-up")->check(within(0.0, 1e3))->capture_default_str();
  app.add_option("--schedule", a.schedule,
                 "steps of warm-up, and the step at which a cosine reaches a tenth of the rate (0: never)")
      ->expected(2)
      ->delimiter(',')
      ->check(within(0l, 1000000000l))
      ->capture_default_str();
  app.add_option("--clip", a.clip, "most the norm of all gradients may be (0: any)")
      ->check(within(0.0))
      ->capture_default_str();
  app.add_option("--text", a.text, "file whose bytes are the tokens");
  app.add_option("--tokens", a.tokens, "file of tokens of 16 or 32 bits, as llm.c and nanoGPT write them");
  app.add_option("--seed", a.seed, "of initial weights and batches")
      ->check(within(std::uint64_t(0)))
      ->capture_default_str();
}

void add_steps(CLI::App& app, arguments& a, long least) {
  app.add_option("--steps", a.steps, "training steps")->check(within(least, 100000l))->capture_default_str();
  app.add_option("--save-state", a.save_state, "write weights and optimizer state after the steps (safetensors)");
  app.add_option("--load-state", a.load_state, "go on from such a file, whatever mesh it was written on");
  app.add_option(
      "--load-weights", a.load_weights,
      "begin with the weights of a public checkpoint (safetensors): a file, an index of several, or a folder");
  app.add_option("--save-weights", a.save_weights,
                 "write the weights alone after the steps, as --load-weights reads them");
}

enum part : unsigned {
  trains = 1,       // from a text
  steps = 2,        // that many
  compares = 4,     // with the plans people use
  describes = 8,    // plans for a machine that is described too
  measures = 16,    // to find its plan
  saves = 32,       // plans
  summarises = 64,  // as JSON
  reports = 128     // as a page
};
struct command {
  const char* name;
  const char* description;
  int (*run)(const arguments&);
  unsigned parts;

  bool has(part p) const { return (parts & p) != 0; }
};
constexpr unsigned plans = measures | saves | summarises;
constexpr command commands[] = {
    {"run", "find a plan, verify it against one rank and compare it with the plans people use", &program::run,
     plans | trains | steps | compares},
    {"plan", "find a plan, for ranks here or (--machine) for a machine that is described", &program::plan,
     plans | describes},
    {"verify", "find a plan, and train some steps under it and on one rank: both must come to the same",
     &program::verify, plans | trains | steps},
    {"train", "find a plan and train under it", &program::train, plans | trains | steps},
    {"compare", "find a plan and run it in turn with those people use", &program::compare, plans | trains | compares},
    {"analyse", "show blocks, segments, strategies and what known plans need, and run nothing", &program::analyse,
     summarises},
    {"explain", "find a plan; say what else each decision could do, where other plans lose, and what memory is worth",
     &program::explain, plans | describes},
    {"report", "find a plan, or take a saved one, and write a page of it: choices, timeline, memory, other plans",
     &program::report_plan, measures | describes | reports},
    {"sweep", "measure the machine here: products, memory, collectives; its file plans for machines like it",
     &program::sweep, 0},
    {"schedule", "show what the ranks of a pipeline do when, how long they stand idle and what they keep",
     &program::schedule, 0},
    {"export", "write a saved plan in another form: for JAX, PyTorch and others, or as a C++ header",
     &program::export_plan, 0},
};

void add_options(CLI::App& app, arguments& a, const command& c) {
  app.add_flag("--json", a.json, "print the summary as JSON, and nothing else");
  if (c.run == &program::schedule) {
    add_schedule(app, a);
    return program::refuse_empty_values(app);
  }
  const bool sweeps = c.run == &program::sweep;
  if (!sweeps) add_model(app, a, c.run == &program::plan || c.run == &program::report_plan);
  add_type(app, a,
           sweeps ? "what numbers are stored as, in products and collectives; unless given bfloat16, and products "
                    "also in float32"
                  : "what numbers are stored as; weights, sums and optimizer state are float32 either way",
           !sweeps);
  if (!sweeps) add_optimizer(app, a);
  const bool exports = c.run == &program::export_plan;
  if (exports) add_export(app, a);
  add_mesh(app, a);
  if (!exports) add_ranks(app, a);
  if (sweeps) add_sweep(app, a);
  else if (!exports) add_memory(app, a);
  if (c.has(measures)) add_measuring(app, a);
  if (c.has(saves)) add_saved_plans(app, a);
  if (c.has(summarises)) add_summary(app, a);
  if (c.has(reports)) add_report(app, a);
  if (c.has(trains)) add_training(app, a);
  if (c.has(steps)) add_steps(app, a, c.run == &program::verify ? 1 : 0);
  if (c.run == &program::train)
    app.add_option("--save-every", a.save_every, "steps after which --save-state writes, over what it wrote before")
        ->check(within(1l, 100000l));
  if (c.has(compares))
    app.add_option("--compare", a.compare, "steps of each plan in the comparison")
        ->check(within(c.run == &program::compare ? 1 : 0, 100000))
        ->capture_default_str();
  if (c.has(describes)) add_machine(app, a);
  if (c.run == &program::plan) add_course(app, a), add_fleet(app, a);
  if (c.run == &program::analyse)
    app.add_flag("--rules", a.rules, "of a graph: say what every operator may be split by");
  program::refuse_empty_values(app);
}

int main_of(const command& c, const arguments& a) {
  if (a.json) program::print_only_json();
  try {
    return program::run_command(c.run, a);
  } catch (...) {
    return program::report();
  }
}

// An option that has no value, or several.
std::string counted_wrong(const CLI::ArgumentMismatch& e, const std::vector<std::string>& given) {
  const std::string what = e.what(), option = what.substr(0, what.find(':'));
  const auto times = std::count_if(given.begin(), given.end(), [&](const std::string& word) {
    return word == option || word.starts_with(option + "=");
  });
  return option +
         (times > 1 ? ": it is given " + std::to_string(times) + " times, give it once" : ": its value is missing");
}

// Why the command line was not understood, in one sentence.
std::string sentence(const CLI::App& app, const CLI::Error& e, const std::vector<std::string>& given_words) {
  const std::string first = given_words.empty() ? "" : given_words.front();
  if (!app.get_subcommands().empty()) {
    const CLI::App& given = *app.get_subcommands().front();
    const std::vector<std::string> rest = app.remaining(true);
    if (const auto* const wrong = dynamic_cast<const CLI::ArgumentMismatch*>(&e))
      return counted_wrong(*wrong, given_words);
    if (e.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || rest.empty()) return e.what();
    const auto option = std::find_if(rest.begin(), rest.end(), [](const auto& r) { return r.starts_with('-'); });
    return given.get_name() + " takes no " + (option != rest.end() ? *option : rest.front()) + "; cfp " +
           given.get_name() + " --help lists what it takes";
  }
  std::string out = first.empty() ? "a command is missing" : first + ": it is no command";
  for (const command& c : commands) out += (&c == commands ? "; the commands are " : ", ") + std::string(c.name);
  return out + ", completion";
}

}  // namespace

/// 0: all well; 1: a promise was broken; 2: bad input.
int main(int argc, char** argv) {
  arguments a;
  CLI::App app{
      "cfp: splits the training of large models over devices. It finds the fastest plan from measurements, proves "
      "it right by running it, and compares it with the plans people use."};
  app.require_subcommand(1);
  for (const command& c : commands) add_options(*app.add_subcommand(c.name, c.description), a, c);
  app.add_subcommand("completion",
                     "print what makes bash complete commands, options and names: eval \"$(cfp completion)\"");
  const std::vector<std::string> words{argv + 1, argv + argc};
  try {
    app.parse(argc, argv);
    program::refuse_empty_elements(*app.get_subcommands().front(), words);
  } catch (const CLI::Success& e) {  // --help
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "%s\n", sentence(app, e, words).c_str());
    return 2;
  }
  if (app.get_subcommand("completion")->parsed()) {
    std::fputs(program::completion_script(app).c_str(), stdout);
    return 0;
  }
  for (int i = 1; i < argc; ++i) a.all.append(argv[i]).append(1, '\n');
  for (const command& c : commands) {
    const CLI::App& sub = *app.get_subcommand(c.name);
    if (!sub.parsed()) continue;
    for (const CLI::Option* const o : sub.get_options())
      if (o->count() > 0) a.given.insert(o->get_name());
    return main_of(c, a);
  }
  return 2;
}
