// What the program `cfp` is told on the command line, and what that means.
#pragma once

#include <cfp/families/carried_file.hpp>
#include <cfp/families/families.hpp>
#include <cfp/graphs/graph_file.hpp>
#include <cfp/session/plan_for.hpp>
#include <cfp/session/session.hpp>

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace program {

struct arguments {
  // the model
  std::string model = "gpt2";
  std::vector<std::string> dims, inputs;  ///< of a graph's file
  std::string loss;
  bool rules = false;
  long layers = 0, batch = 4, sequence = 32, pieces = 0, vocabulary = 0;
  int micro_batches = 1, axes = 2;
  std::string type = "float32";
  std::vector<std::string> optimizers{"adamw"};
  std::string gradients = "none";
  // the ranks
  std::string backend = "threads", mesh = "data=2", machine;
  bool share_gpus = false;
  double deadline = 600;
  // planning
  long memory = 0;
  bool explain = false, unfused = false;
  std::string recompute = "where-needed";
  std::vector<int> stages;        ///< places along them; 0: any
  std::vector<long> lengths;      ///< of sequences, a plan for each
  std::vector<std::string> then;  ///< machines in the place of the first, a plan for each
  std::string fleet, least = "time";
  double budget = 0, tokens_in_all = 0;  ///< of a fleet: most an hour may cost, 0: any; tokens of the training
  double tolerance = 0.02, plan_seconds = 0, together = 0;
  std::string profile_mode, profile, plan, against, save_plan, save_header, summary;
  // exporting, and reports
  std::string to, output, trace;
  // sweeping
  double seconds = 0.5;
  long most = 64l << 20;
  std::string save_machine;
  // schedules of a pipeline
  std::string pipeline = "1f1b", svg, save_schedule;
  int ranks = 4, chunks = 2, slices = 4;
  double forward = 1, backward = 2, send = 0;
  // training
  long steps = 10, save_every = 0;
  int compare = 20;
  double rate = 3e-4, clip = 1;
  std::vector<long> schedule{2, 1000};
  std::string text, tokens, save_state, load_state, save_weights, load_weights;
  std::uint64_t seed = 1;

  bool json = false;  ///< print the summary alone

  std::string all;              ///< as they were given, to compare between processes
  std::set<std::string> given;  ///< options, such as "--batch"

  bool is_given(const std::string& option) const { return given.count(option) > 0; }

  bool lazy() const { return profile_mode == "lazy" || (profile_mode.empty() && !explain); }
  cfp::number number() const { return type == "float32" ? cfp::number::float32 : cfp::number::bfloat16; }
  std::vector<cfp::optimizer_form> forms() const;  ///< of the optimizer
  cfp::training training() const;
  cfp::session_options session() const;
  cfp::machine_plan_options machine_plan() const;
};

/// Of several processes the first speaks and writes files.
inline int process = 0;
inline bool is_first() { return process == 0; }

/// A file of examples/FOLDER that is asked for by name, or the path given: in the source tree, or where `cmake
/// --install` puts them.
cfp::families::carried_file carried(const std::string& folder, const std::string& option, const std::string& asked);

/// The names of what is carried along.
std::vector<std::string> carried_names(const std::string& folder);

/// A model, and of a graph's file what that says beside it.
struct made_model : cfp::families::built_model {
  std::shared_ptr<const cfp::graphs::graph_file> file;
};
/// The model of a configuration or of a graph's file, `rows` sequences in a pass. Of hundreds of layers, `folded`, few
/// are written.
made_model make_model(const arguments& a, long rows, long layers, long least_groups, bool folded = false);
/// That of a graph's file.
made_model make_graph(const arguments& a, long rows);
/// "gpt2: layers=2 width=768 ..." and what was decided of a graph.
void say_model(const arguments& a, const made_model& net, const std::string& more);
void say_decided(const made_model& net);  ///< the latter alone
/// Random numbers for what a graph's file does not tell, by a seed.
cfp::batch_source random_batches(const made_model& net, std::uint64_t seed);
/// Training begins with the weights of a graph's file.
void take_weights(cfp::session& session, const made_model& net);

/// Sequences of a micro-batch. Throws bad_input where they are not whole.
long rows_of(long batch, int micro_batches);

/// A session, and what it is trained on.
struct prepared {
  made_model net;
  cfp::session session;
  cfp::batch_source text;
};
prepared prepare(const arguments& a);

/// One line on a terminal, nothing elsewhere; false never: it does not stop anything.
bool show_progress(const cfp::progress& p);
void clear_progress();

/// "gpt2: layers=2 width=768 ..., mesh data=2" and what is known before anything runs.
void introduce(prepared& p, const arguments& a);
/// Finds the plan, or takes the one given, and prints it.
const cfp::found_plan& plan_and_print(prepared& p, const arguments& a);
/// What was planned and found, as JSON.
nlohmann::ordered_json summary_of(prepared& p, const arguments& a, const cfp::found_plan& found);
/// Weights and optimizer state as they are now, where they were asked for.
void save_trained(prepared& p, const arguments& a);
/// From now on what is printed is JSON alone.
void print_only_json();
/// Writes what was asked for.
void save(prepared& p, const arguments& a);
void save_summary(prepared& p, const arguments& a, const std::string& json);
/// In the first process: writes a summary where it was asked for, to a file and to standard output.
void answer(const arguments& a, const std::string& json);

}  // namespace program
