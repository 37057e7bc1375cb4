// Graphs from files, whatever format they are in.
#pragma once

#include <cfp/file/whole_file.hpp>
#include <cfp/graphs/hlo_reader.hpp>
#include <cfp/graphs/onnx_reader.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/model/refine.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace cfp::inline v0_1::graphs {

/// A file's bytes, which what is read has views of, and its graph.
struct graph_file {
  std::shared_ptr<const std::string> bytes;
  read_graph read;
};

/// Whether a path is of a graph, by how it ends.
inline bool is_graph_file(const std::string& path) {
  const std::string ends = std::filesystem::path(path).extension().string();
  return ends == ".onnx" || ends == ".hlo" || ends == ".pb";
}

namespace detail {

// Where reshapes cut one dimension in ways that do not align, they keep all of their dimensions whole.
template <class Read>
read_graph refinable(const Read& read) {
  read_graph out = read(false);
  try {
    refine(out.forward);
  } catch (const error&) {
    out = read(true);
    refine(out.forward);
    out.said.push_back("its reshapes cut dimensions in ways that do not align: they keep theirs whole");
  }
  checked(out.forward);
  return out;
}

}  // namespace detail

/// The model in the bytes of a ModelProto. Throws bad_input for what is none, naming file, node and value.
inline read_graph onnx_graph(std::string_view bytes, const std::string& path, const graph_options& options) {
  const onnx_file file = read_onnx(bytes, path);
  return detail::refinable([&](bool whole_reshapes) { return onnx_reader(file, options, whole_reshapes).run(); });
}

/// The model in the bytes of an HloModuleProto. Throws bad_input for what is none, naming file, instruction and value.
inline read_graph hlo_graph(std::string_view bytes, const std::string& path, const graph_options& options) {
  const hlo_file file = read_hlo(bytes, path);
  return detail::refinable([&](bool whole_reshapes) { return hlo_reader(file, options, whole_reshapes).run(); });
}

/// The model of a file. Throws bad_input for what is none, naming file, node and value.
inline graph_file read_graph_file(const std::string& path, const graph_options& options) {
  graph_file out;
  std::optional<std::string> all = cfp::detail::whole_file(path);
  if (!all) throw bad_input(path + cfp::detail::unreadable(path));
  out.bytes = std::make_shared<const std::string>(std::move(*all));
  const bool is_onnx = std::filesystem::path(path).extension() == ".onnx";
  out.read = is_onnx ? onnx_graph(*out.bytes, path, options) : hlo_graph(*out.bytes, path, options);
  return out;
}

}  // namespace cfp::graphs
