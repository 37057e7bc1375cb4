#include "arguments.hpp"

#include <cfp/backend/checkpoint.hpp>
#include <cfp/model/random_words.hpp>
#include <cfp/session/first_process.hpp>

#include <charconv>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace program {

using cfp::bad_input;

namespace {

// "heads=12".
void add_dim(const std::string& text, cfp::graphs::graph_options& to) {
  const std::size_t equals = text.rfind('=');
  long size = 0;
  const char* const end = text.data() + text.size();
  const auto [at, wrong] = equals == std::string::npos ? std::from_chars_result{end, std::errc::invalid_argument}
                                                       : std::from_chars(text.data() + equals + 1, end, size);
  if (wrong != std::errc() || at != end || equals == 0 || size < 1)
    throw bad_input("--dim: it is NAME=SIZE with a size of 1 or more, got: " + text);
  if (!to.dims.emplace(text.substr(0, equals), size).second)
    throw bad_input("--dim: '" + text.substr(0, equals) + "' is given twice");
}

// What was said of sizes and the file had no use for is a mistake.
void check_used(const arguments& a, const cfp::graphs::graph_options& o, const cfp::graphs::read_graph& read) {
  for (const auto& [name, size] : o.dims)
    if (read.used.count(name) == 0) throw bad_input("--dim: " + a.model + " has no dimension '" + name + "'");
  for (const auto& [option, name] : {std::pair("--batch", "batch"), {"--seq", "seq"}})
    if (a.is_given(option) && read.used.count(name) == 0)
      throw bad_input(std::string(option) + ": " + a.model + " leaves no such size open; leave it out");
}

}  // namespace

made_model make_graph(const arguments& a, long rows) {
  for (const char* const option : {"--layers", "--pieces", "--vocabulary", "--text", "--tokens"})
    if (a.is_given(option)) throw bad_input(std::string(option) + ": it is of a configuration file, not of a graph");
  if (a.is_given("--inputs") && a.model.ends_with(".onnx"))
    throw bad_input("--inputs: " + a.model + " says itself what its weights are (initializers); leave it out");
  cfp::graphs::graph_options o;
  for (const std::string& dim : a.dims) add_dim(dim, o);
  o.batch = rows;
  o.sequence = a.sequence;
  o.inputs.insert(a.inputs.begin(), a.inputs.end());
  o.output = a.loss;
  auto file = std::make_shared<cfp::graphs::graph_file>(cfp::graphs::read_graph_file(a.model, o));
  check_used(a, o, file->read);
  made_model out;
  out.forward = file->read.forward;
  out.family = "graph";
  out.sizes = file->read.sizes;
  out.file = std::move(file);
  return out;
}

// Element i of input number n in pass p is made of word i % 4 of the words of (p, n, i / 4).
cfp::batch_source random_batches(const made_model& net, std::uint64_t seed) {
  return [g = net.forward, fixed = net.file->read.fixed, seed](long pass) {
    cfp::batch out = fixed;
    for (int v = 0, number = 0; v < g.value_count(); ++v) {
      if (g[v].role != cfp::value_role::input || fixed.count(std::string(g[v].label.view())) > 0) continue;
      const auto word = [&, of = static_cast<std::uint64_t>(pass) << 16 | static_cast<std::uint64_t>(number)](long i) {
        return cfp::random_words(seed, of, static_cast<std::uint64_t>(i / 4)).v[static_cast<std::size_t>(i % 4)];
      };
      const long count = cfp::elements(g[v].shape);
      ++number;
      if (g[v].type == cfp::element::index) {
        std::vector<std::int32_t> all;
        for (long i = 0; i < count; ++i)
          all.push_back(static_cast<std::int32_t>(word(i) % static_cast<std::uint32_t>(g[v].fill.bound)));
        out[std::string(g[v].label.view())] = std::move(all);
      } else {
        std::vector<float> all;
        for (long i = 0; i < count; ++i) all.push_back(static_cast<float>(word(i) >> 8) * 0x1p-23f - 1.0f);
        out[std::string(g[v].label.view())] = std::move(all);
      }
    }
    return out;
  };
}

void take_weights(cfp::session& session, const made_model& net) {
  const cfp::graph& g = session.training_graph();
  std::map<std::string, std::string_view> numbers;
  for (const auto& w : net.file->read.weights)
    if (!w->floats.empty()) numbers.emplace(w->label, w->floats);
  for (const cfp::value& v : g.values)
    if (v.role == cfp::value_role::weight && v.producer < 0 && numbers.count(std::string(v.label.view())) == 0) return;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("cfp_weights_" + std::to_string(getpid()) + ".safetensors")).string();
  cfp::new_checkpoint weights(path, g, {}, nullptr);
  for (const auto& [v, to] : weights.weights())
    for (std::size_t i = 0; i < to.size(); ++i) {
      float number = 0;
      std::memcpy(&number, numbers.at(std::string(g[v].label.view())).data() + i * sizeof number, sizeof number);
      to.set(i, static_cast<double>(number));
    }
  weights.commit();
  session.load_weights(path);
  std::filesystem::remove(path);
}

}  // namespace program
