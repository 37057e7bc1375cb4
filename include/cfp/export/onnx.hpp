// A plan as an ONNX model with its multi-device annotations (IR version 11, ONNX 1.18): forward, each node with how its
// operands and results are sharded and over which devices, and the stage of the pipeline it is of.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/export/exported.hpp>
#include <cfp/export/plan_view.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if __has_include(<protozero/pbf_writer.hpp>)
#include <protozero/pbf_writer.hpp>

namespace cfp::inline v0_1 {

namespace detail {

// Numbers of fields, as onnx.proto has them.
namespace onnx {
enum : std::uint32_t {
  model_ir_version = 1,
  model_producer = 2,
  model_doc = 6,
  model_graph = 7,
  model_opset = 8,
  model_configuration = 26,
  graph_node = 1,
  graph_name = 2,
  graph_input = 11,
  graph_output = 12,
  node_input = 1,
  node_output = 2,
  node_name = 3,
  node_op_type = 4,
  node_attribute = 5,
  node_domain = 7,
  node_devices = 10,
  attribute_name = 1,
  attribute_s = 4,
  attribute_type = 20,
  opset_domain = 1,
  opset_version = 2,
  value_name = 1,
  value_type = 2,
  type_tensor = 1,
  tensor_elem = 1,
  tensor_shape = 2,
  shape_dim = 1,
  dim_value = 1,
  configuration_name = 1,
  configuration_devices = 2,
  devices_configuration = 1,
  devices_sharding = 2,
  devices_stage = 3,
  spec_tensor = 1,
  spec_device = 2,
  spec_groups = 3,
  spec_dim = 4,
  group_key = 1,
  group_value = 2,
  sharded_axis = 1,
  sharded_simple = 2,
  simple_value = 1,
  simple_shards = 3
};
}  // namespace onnx

class onnx_model {
 public:
  explicit onnx_model(const plan_view& view) : view_(view), g_(view.g()) {
    write();
    if (!owed_.empty())
      notes.push_back("parts of sums, which ONNX has no word for, stand as whole: " + counted(owed_, "tensor"));
    std::vector<std::string> anew;
    for (const viewed_tensor& t : view.tensors())
      if (t.recomputed) anew.push_back(t.name);
    if (!anew.empty()) notes.push_back("what is computed again for backward is not said: " + counted(anew, "tensor"));
    notes.emplace_back(
        "operators are those of the domain 'cfp', with their rules as attributes; a runtime that knows ONNX's "
        "own alone reads the annotations and cannot run them");
  }
  std::string bytes;
  std::vector<std::string> notes;

 private:
  using message = protozero::pbf_writer;

  void write() {
    message model(bytes);
    model.add_int64(onnx::model_ir_version, 11);
    model.add_string(onnx::model_producer, "cfp");
    model.add_string(onnx::model_doc, "A plan for " + view_.model());
    {
      message graph(model, onnx::model_graph);
      for (int o = 0; o < g_.size(); ++o)
        if (view_.is_forward(o)) add(graph, o);
      graph.add_string(onnx::graph_name, "forward");
      for (const viewed_tensor& t : view_.tensors())
        if (view_.is_weight(t) || view_.is_input(t)) describe_value(graph, onnx::graph_input, t);
      describe_value(graph, onnx::graph_output, view_.tensor(g_.loss));
    }
    for (const auto& [domain, version] : {std::pair("", 23), std::pair("cfp", 1)}) {
      message opset(model, onnx::model_opset);
      opset.add_string(onnx::opset_domain, domain);
      opset.add_int64(onnx::opset_version, version);
    }
    message configuration(model, onnx::model_configuration);
    configuration.add_string(onnx::configuration_name, "cfp");
    configuration.add_int32(onnx::configuration_devices, view_.mesh().devices() * places());
  }
  int places() const { return view_.stages() ? view_.stages()->places : 1; }

  void describe_value(message& graph, std::uint32_t field, const viewed_tensor& t) {
    message value(graph, field);
    value.add_string(onnx::value_name, t.name);
    message type(value, onnx::value_type);
    message tensor(type, onnx::type_tensor);
    const element e = stored(view_.value_of(t).type, view_.real_bytes());
    const bool full = e == element::wide || view_.is_weight(t) || view_.real_bytes() == 4;
    tensor.add_int32(onnx::tensor_elem, e == element::index ? 6 : full ? 1 : 16);
    if (g_[t.value].rank() == 0) return tensor.add_message(onnx::tensor_shape, std::string());  // of a single number
    message shape(tensor, onnx::tensor_shape);
    for (const long n : view_.written_shape(t)) {
      message dim(shape, onnx::shape_dim);
      dim.add_int64(onnx::dim_value, n);
    }
  }

  void add(message& graph, int o) {
    const operation& op = g_.at(o);
    message node(graph, onnx::graph_node);
    std::vector<std::pair<int, partition>> held;
    for (int k = 0; k < op.operands.size(); ++k) {
      const int v = op.operands[k];
      node.add_string(onnx::node_input, view_.tensor(v).name);
      held.emplace_back(v, view_.reads(o, k));
    }
    for (int k = 0; k < op.results.size(); ++k) {
      const int v = op.results[k];
      node.add_string(onnx::node_output, view_.tensor(v).name);
      held.emplace_back(v, view_.makes(o, k));
      if (held.back().second.is_partial()) owed_.push_back(view_.tensor(v).name);
    }
    node.add_string(onnx::node_name, view_.tensor(op.results[0]).name);
    node.add_string(onnx::node_op_type, std::string(op.op->label));
    {
      message rule(node, onnx::node_attribute);
      rule.add_string(onnx::attribute_name, "rule");
      rule.add_string(onnx::attribute_s, std::string(spell(op.r).view()));
      rule.add_int32(onnx::attribute_type, 3);  // a text
    }
    node.add_string(onnx::node_domain, "cfp");
    message devices(node, onnx::node_devices);
    devices.add_string(onnx::devices_configuration, "cfp");
    const int place = view_.stages() ? view_.stage_of(o) % places() : 0;
    for (const auto& [v, form] : held) add_sharding(devices, v, form, place);
    if (view_.stages()) devices.add_int32(onnx::devices_stage, view_.stage_of(o));
  }

  // Shards in row-major order; where several devices hold one, an entry is a group of them, with a number behind all
  // devices'.
  void add_sharding(message& devices, int v, const partition& held, int place) {
    message spec(devices, onnx::devices_sharding);
    spec.add_string(onnx::spec_tensor, view_.tensor(v).name);
    const mesh_shape& mesh = view_.mesh();
    long shards = 1;
    for (int d = 0; d < held.rank(); ++d) shards *= pieces(held, d, mesh);
    std::vector<std::vector<std::int64_t>> holders(static_cast<std::size_t>(shards));
    for (int device = 0; device < mesh.devices(); ++device) {
      long at = 0;
      for (int d = 0; d < held.rank(); ++d) at = at * pieces(held, d, mesh) + piece_of(held, d, mesh, device);
      holders[static_cast<std::size_t>(at)].push_back(device + place * mesh.devices());
    }
    const std::int64_t first = static_cast<std::int64_t>(mesh.devices()) * places();
    std::vector<std::int64_t> entries;
    for (std::size_t s = 0; s < holders.size(); ++s)
      entries.push_back(holders[s].size() == 1 ? holders[s][0] : first + static_cast<std::int64_t>(s));
    for (const std::int64_t e : entries) spec.add_int64(onnx::spec_device, e);
    for (std::size_t s = 0; s < holders.size(); ++s) {
      if (holders[s].size() == 1) continue;
      message group(spec, onnx::spec_groups);
      group.add_int64(onnx::group_key, entries[s]);
      for (const std::int64_t d : holders[s]) group.add_int64(onnx::group_value, d);
    }
    add_dimensions(spec, g_[v], held);
  }
  // An axis is a written dimension; of a compound one each part is said.
  void add_dimensions(message& spec, const value& of, const partition& held) {
    for (int d = 0, axis = 0; d < of.rank(); ++axis) {
      int end = d + 1;
      while (end < of.rank() && of.group[end] == of.group[d]) ++end;
      message dim(spec, onnx::spec_dim);
      dim.add_int64(onnx::sharded_axis, axis);
      for (; d < end; ++d) {
        message simple(dim, onnx::sharded_simple);
        simple.add_int64(onnx::simple_value, of.shape[d]);
        simple.add_int64(onnx::simple_shards, pieces(held, d, view_.mesh()));
      }
    }
  }

  const plan_view& view_;
  const graph& g_;
  std::vector<std::string> owed_;
};

}  // namespace detail

inline exported to_onnx(const plan_view& view) {
  detail::onnx_model made(view);
  return {std::move(made.bytes), std::move(made.notes)};
}

}  // namespace cfp

#else

namespace cfp::inline v0_1 {

inline exported to_onnx(const plan_view&) {
  throw bad_input(
      "--to onnx: this program was built without protozero (libprotozero-dev); install it and build it again");
}

}  // namespace cfp

#endif
