#include "arguments.hpp"
#include "as_saved.hpp"
#include "commands.hpp"
#include "files.hpp"

#include <cfp/backend/cuda/fusions.hpp>
#include <cfp/export/deepspeed.hpp>
#include <cfp/export/dot.hpp>
#include <cfp/export/jax.hpp>
#include <cfp/export/megatron.hpp>
#include <cfp/export/onnx.hpp>
#include <cfp/export/plan_header.hpp>
#include <cfp/export/shardy.hpp>
#include <cfp/export/torch.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/plan/stages/realise_stages.hpp>
#include <cfp/profile/machine/machine_file.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/option_checks.hpp>
#include <cfp/session/texts.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace program {

namespace {

using cfp::bad_input;

// Where plans are priced that a target has in the place of one that it has not: a machine that is described runs fused
// kernels, as where plans are made for one.
cfp::pricing priced(const arguments& a, const cfp::plan_view& view) {
  cfp::pricing out{cfp::plain_machine(view.mesh()), {}};
  out.on.name = "a machine as simple as can be (--machine says another)";
  out.how.lowered_for = view.real_bytes();
  if (a.machine.empty()) return out;
  out.on = cfp::load_machine(carried("machines", "--machine", a.machine).path);
  out.how.lowered_for =
      cfp::cuda::catalogue_target(view.real_bytes() < 4 ? cfp::number::bfloat16 : cfp::number::float32);
  return out;
}

// As C++, in a namespace named after the file.
cfp::exported header_of(const cfp::opened_plan& p, const std::string& path) {
  const cfp::target host(p.real_bytes);
  cfp::plan made = p.stages ? cfp::realise("found", p.g, *p.stages, p.decisions, p.choices, host)
                            : cfp::realise("found", p.g, p.mesh, p.decisions, p.choices, host);
  made.predicted_ms = p.predicted_ms;
  const cfp::block_structure blocks = cfp::parallel_blocks(p.g);
  const cfp::segmentation parts = cfp::segments(p.g, blocks);
  const cfp::segment_times shares(blocks, parts, p.decisions);
  return {cfp::plan_header(cfp::detail::header_space(path), p.model, made, p.g, shares), {}};
}

struct export_target {
  const char* name;
  cfp::exported (*write)(const cfp::plan_view&, const arguments&);
  bool prices = false;  ///< plans that are near
};
using view = const cfp::plan_view&;
constexpr export_target targets[] = {
    {"jax", [](view v, const arguments&) { return cfp::to_jax(v); }},
    {"torch", [](view v, const arguments&) { return cfp::to_torch(v); }},
    {"megatron", [](view v, const arguments& a) { return cfp::to_megatron(v, priced(a, v)); }, true},
    {"deepspeed", [](view v, const arguments& a) { return cfp::to_deepspeed(v, priced(a, v)); }, true},
    {"shardy", [](view v, const arguments&) { return cfp::to_shardy(v); }},
    {"onnx", [](view v, const arguments&) { return cfp::to_onnx(v); }},
    {"dot", [](view v, const arguments&) { return cfp::to_dot(v); }},
    {"header", [](view v, const arguments& a) { return header_of(v.plan(), a.output); }},
};

// The plan with its model. Tokens that go to experts are routed in groups, as many as what planned wished for.
cfp::opened_plan opened(const arguments& given) {
  const std::string where = "plan " + given.plan, text = contents(given.plan);
  if (text.empty()) {
    const std::string why = cfp::detail::unreadable(given.plan);
    throw bad_input(where + (why.empty() ? ": is empty; save a plan again, with --save-plan" : why));
  }
  const cfp::plan_outline of = cfp::outline_of_plan(text, where);
  const arguments a = as_saved(given, of);
  if (!a.is_given("--model"))
    throw bad_input(where + ": is of model '" + of.model + "', which names no configuration: give --model");
  const long rows = rows_of(a.batch, a.micro_batches);
  const cfp::mesh_shape mesh = cfp::read_mesh(a.mesh);
  const cfp::training how = cfp::in_micro_batches(a.training(), a.micro_batches);
  cfp::families::built_model net;
  std::string id;
  for (const long groups : {2l, static_cast<long>(of.mesh.devices()), 1l}) {
    net = make_model(a, rows, a.layers, groups);
    id = a.model + " " + net.sizes + cfp::detail::said_of(how, a.number());
    if (id == of.model) break;
  }
  return cfp::open_plan(text, where, id, net.forward, how, mesh, cfp::bytes_of(a.number()));
}

// All of it and nothing more: some are no text.
void write(const std::string& path, const std::string& bytes) {
  cfp::new_file file(path);
  errno = 0;
  std::ofstream out(file.beside(), std::ios::binary);
  out << bytes;
  out.close();
  if (!out)
    throw bad_input(path + ": cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  file.take_name();
}

}  // namespace

int export_plan(const arguments& a) {
  if (a.plan.empty()) throw bad_input("export needs a saved plan: cfp export FILE --to TARGET -o FILE");
  if (a.to.empty())
    throw bad_input((a.output.empty() ? "export" : "-o " + a.output) + ": what for is missing, give --to TARGET");
  if (a.output.empty()) throw bad_input("--to " + a.to + ": where to is missing, give -o FILE");
  const auto* const target =
      std::find_if(std::begin(targets), std::end(targets), [&](const export_target& t) { return t.name == a.to; });
  if (!a.machine.empty() && !target->prices)
    throw bad_input("--machine: --to " + a.to + " says the plan as it is and prices no other; leave it out");
  const cfp::opened_plan plan = opened(a);
  const cfp::exported out = target->write(cfp::plan_view(plan), a);
  write(a.output, out.text);
  answer(
      a,
      nlohmann::ordered_json{{"plan", a.plan}, {"to", a.to}, {"file", a.output}, {"approximations", out.approximations}}
          .dump(1));
  for (const std::string& said : out.approximations) std::fprintf(stderr, "--to %s: %s\n", a.to.c_str(), said.c_str());
  return 0;
}

std::vector<std::string> export_targets() {
  std::vector<std::string> out;
  for (const export_target& t : targets) out.emplace_back(t.name);
  return out;
}

}  // namespace program
