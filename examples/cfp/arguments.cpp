#include "arguments.hpp"

#include "files.hpp"
#include "ranks.hpp"

#include <cfp/backend/host/elementary_kernels.hpp>
#include <cfp/families/byte_text.hpp>
#include <cfp/families/token_file.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace program {

namespace fs = std::filesystem;
using cfp::bad_input;

namespace {
// Where `cmake --install` puts what is carried along.
fs::path installed() {
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none).parent_path() / "../share/cfp";
}

template <class Names>
auto place_of(const std::string& name, const Names& names) {
  return std::find(names.begin(), names.end(), name) - names.begin();
}
}  // namespace

std::vector<cfp::optimizer_form> arguments::forms() const {
  std::vector<cfp::optimizer_form> out;
  for (const std::string& name : optimizers)
    out.push_back(static_cast<cfp::optimizer_form>(place_of(name, cfp::optimizer_names)));
  return out;
}

cfp::training arguments::training() const {
  cfp::training t;
  t.rate = rate;
  t.warmup = schedule[0];
  t.steps = schedule[1];
  t.last_rate = rate / 10;
  t.clip = clip;
  t.optimizer = forms().front();
  t.gradients = static_cast<cfp::compression>(place_of(gradients, cfp::compression_names));
  return t;
}

cfp::session_options arguments::session() const {
  if (optimizers.size() > 1) throw bad_input("--optimizer: several are compared with --machine alone; name one");
  cfp::session_options o;
  o.mesh = mesh;
  o.on = ranks_of(*this);
  o.type = number();
  o.memory = memory;
  o.micro_batches = micro_batches;
  o.how = training();
  o.table = profile;
  o.lazy = lazy();
  o.tolerance = lazy() ? tolerance : 0;
  o.seed = seed;
  o.deadline = deadline;
  o.tell = show_progress;
  return o;
}

cfp::machine_plan_options arguments::machine_plan() const {
  cfp::machine_plan_options o;
  if (is_given("--mesh")) o.mesh = mesh;
  o.type = is_given("--type") ? number() : cfp::number::bfloat16;
  o.axes = axes;
  o.unfused = unfused;
  o.recompute = recompute == "none"  ? cfp::recomputing::none
                : recompute == "all" ? cfp::recomputing::all
                                     : cfp::recomputing::where_needed;
  o.memory = memory;
  o.micro_batches = micro_batches;
  o.how = training();
  if (optimizers.size() > 1) o.optimizers = forms();
  o.table = profile;
  o.tell = show_progress;
  if (is_given("--seconds")) o.seconds = plan_seconds;
  if (is_given("--together")) o.together = together;
  return o;
}

cfp::families::carried_file carried(const std::string& folder, const std::string& option, const std::string& asked) {
  return cfp::families::find_carried({fs::path(CFP_SOURCE_DIR) / "examples" / folder, installed() / folder}, asked,
                                     "give " + option);
}

std::vector<std::string> carried_names(const std::string& folder) {
  for (const fs::path& at : {fs::path(CFP_SOURCE_DIR) / "examples" / folder, installed() / folder})
    if (fs::is_directory(at)) return cfp::families::names_in(at);
  return {};
}

made_model make_model(const arguments& a, long rows, long layers, long least_groups, bool folded) {
  if (cfp::graphs::is_graph_file(a.model)) return make_graph(a, rows);
  for (const char* const option : {"--dim", "--inputs", "--loss", "--rules"})
    if (a.is_given(option)) throw bad_input(std::string(option) + ": it is of a graph's file, .onnx or .hlo");
  const cfp::families::config_file file(carried("models", "--model", a.model).path);
  cfp::families::model_sizes sizes;
  sizes.batch = rows;
  sizes.sequence = a.sequence;
  sizes.pieces = a.pieces;
  sizes.layers = layers;
  sizes.folded = folded;
  sizes.vocabulary = a.vocabulary;
  sizes.pad_to = a.load_weights.empty() ? 128 : 1;  // a checkpoint has what it has
  sizes.least_groups = least_groups;
  made_model out{build_model(file, sizes), nullptr};
  if (const long image = out.inputs.image_rows; image > 0 && a.is_given("--seq") && a.sequence != image)
    throw bad_input("--seq " + std::to_string(a.sequence) + ": an image of " + file.path + " is a sequence of " +
                    std::to_string(image) + "; leave it out");
  return out;
}

namespace {

std::string read_text(const arguments& a, long need) {
  std::string path = a.text;
  if (path.empty()) {
    path = fs::exists(CFP_SOURCE_DIR "/LICENSE") ? std::string(CFP_SOURCE_DIR "/LICENSE")
                                                 : (installed() / "LICENSE").string();
  }
  if (!std::ifstream(path)) throw bad_input("--text " + path + ": cannot be read");
  std::string text = contents(path);
  if (static_cast<long>(text.size()) < need)
    throw bad_input("--text " + path + ": has " + std::to_string(text.size()) + " bytes, a sequence needs " +
                    std::to_string(need));
  return text;
}

// A text's tokens are its bytes.
void check_vocabulary(const arguments& a, const cfp::families::built_model& net) {
  if (net.vocabulary >= 256) return;
  const std::string whole = std::to_string(net.vocabulary), wrong = " must be 256 or more, as tokens are bytes";
  if (a.vocabulary > 0) throw bad_input("--vocabulary " + whole + ": it" + wrong);
  throw bad_input(carried("models", "--model", a.model).path + ": its vocabulary, " +
                  std::to_string(net.vocabulary_given) + " padded to " + whole + "," + wrong +
                  "; give --vocabulary 256");
}

}  // namespace

long rows_of(long batch, int micro_batches) {
  if (micro_batches == 0)
    throw bad_input(
        "--micro-batches 0: those that take least are looked for where a plan is made for a machine that is described; "
        "give --machine or --fleet, or say how many");
  if (batch % micro_batches == 0) return batch / micro_batches;
  int fewer = micro_batches;
  while (batch % fewer != 0) --fewer;
  throw bad_input("--batch " + std::to_string(batch) + " cannot be cut into " + std::to_string(micro_batches) +
                  " micro-batches of whole sequences; give --micro-batches " + std::to_string(fewer) +
                  ", or a --batch that they divide");
}

namespace {

// What holds of several options together.
void check_together(const arguments& a) {
  if (a.save_every > 0 && a.save_state.empty()) throw bad_input("--save-every: where to is missing, give --save-state");
  if (a.is_given("--tolerance") && !a.lazy())
    throw bad_input(
        "--tolerance: everything is measured (--explain, --profile-mode full), and the best plan found: leave "
        "it out, or give --profile-mode lazy");
  if (!a.plan.empty() && (a.explain || !a.against.empty()))
    throw bad_input("--explain and --against need measurements, --plan makes none: leave one out");
  if (!a.load_state.empty() && !a.load_weights.empty())
    throw bad_input("--load-state and --load-weights: training begins with one of them, leave one out");
  if (!a.text.empty() && !a.tokens.empty())
    throw bad_input("--text and --tokens: training is on one of them, leave one out");
  rows_of(a.batch, a.micro_batches);
  if (a.schedule[1] > 0 && a.schedule[0] > a.schedule[1])
    throw bad_input("--schedule " + std::to_string(a.schedule[0]) + "," + std::to_string(a.schedule[1]) +
                    ": the warm-up lasts beyond the end; a rate that stays has 0 as its end");
}

// What the model is trained on.
cfp::batch_source text_of(const arguments& a, const cfp::families::built_model& net, long rows) {
  const long length = net.inputs.length(a.sequence), need = length + net.inputs.reach();
  if (a.tokens.empty()) {
    check_vocabulary(a, net);
    return cfp::families::byte_text(read_text(a, need), rows, length, a.seed, net.inputs);
  }
  if (net.inputs.image_rows > 0) throw bad_input("--tokens: this model is of images, whose bytes --text has");
  cfp::families::token_file tokens(a.tokens, net.vocabulary);
  if (tokens.size() < static_cast<std::size_t>(need))
    throw bad_input("--tokens " + a.tokens + ": has " + std::to_string(tokens.size()) + " tokens, a sequence needs " +
                    std::to_string(need));
  return cfp::families::text_rows(std::move(tokens), rows, a.sequence, a.seed, net.inputs);
}

}  // namespace

namespace {

prepared prepare_graph(const arguments& a, made_model net) {
  cfp::session_options options = a.session();
  options.name = a.model + " " + net.sizes;
  options.kernels = cfp::elementary_kernels();
  cfp::session session(net.forward, options);
  if (!a.load_state.empty()) session.load_state(a.load_state);
  else if (!a.load_weights.empty()) session.load_weights(a.load_weights);
  else take_weights(session, net);
  cfp::batch_source batches = random_batches(net, a.seed);
  return {std::move(net), std::move(session), std::move(batches)};
}

}  // namespace

prepared prepare(const arguments& a) {
  check_together(a);
  const bool is_graph = cfp::graphs::is_graph_file(a.model);
  const bool by_name = !is_graph && carried("models", "--model", a.model).by_name;
  const bool few = a.layers == 0 && by_name && a.load_weights.empty();
  const long rows = rows_of(a.batch, a.micro_batches), layers = few ? 2 : a.layers;
  made_model net = make_model(a, rows, layers, 2);
  if (is_graph) return prepare_graph(a, std::move(net));
  cfp::batch_source text = text_of(a, net, rows);
  cfp::session_options options = a.session();
  options.name = a.model + " " + net.sizes;
  cfp::session session(net.forward, options);
  if (!a.load_state.empty()) session.load_state(a.load_state);
  if (!a.load_weights.empty()) session.load_weights(a.load_weights, net.weights);
  return {std::move(net), std::move(session), std::move(text)};
}

}  // namespace program
