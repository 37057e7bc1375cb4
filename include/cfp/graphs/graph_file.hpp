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

// Where operators cut one dimension in ways that do not align, some of them keep it whole.
template <class Read>
read_graph refinable(const Read& read) {
  for (int caution = 0;; ++caution) {
    read_graph out = read(caution);
    try {
      refine(out.forward);
    } catch (const error& e) {
      if (caution < 2) continue;
      throw bad_input(e.what());
    }
    if (caution > 0)
      out.said.push_back(std::string(caution > 1 ? "reshapes and pieces" : "pieces") +
                         " cut dimensions in ways that do not align: theirs stay whole");
    checked(out.forward);
    return out;
  }
}

}  // namespace detail

/// The model in the bytes of a ModelProto. Throws bad_input for what is none, naming file, node and value.
inline read_graph onnx_graph(std::string_view bytes, const std::string& path, const graph_options& options) {
  const onnx_file file = read_onnx(bytes, path);
  return detail::refinable([&](int caution) { return onnx_reader(file, options, caution).run(); });
}

/// The model in the bytes of an HloModuleProto. Throws bad_input for what is none, naming file, instruction and value.
inline read_graph hlo_graph(std::string_view bytes, const std::string& path, const graph_options& options) {
  const hlo_file file = read_hlo(bytes, path);
  return detail::refinable([&](int caution) { return hlo_reader(file, options, caution).run(); });
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
