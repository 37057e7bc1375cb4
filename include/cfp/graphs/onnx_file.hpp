// What an ONNX file says: a ModelProto, read field by field, and held to what a graph must be before anything of it is
// believed.
#pragma once

#include <cfp/graphs/wire.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct onnx_tensor {
  std::string name;
  std::vector<long> dims;
  long type = 0;
  std::string_view raw{};
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<long> integers;
  bool elsewhere = false;  ///< in another file
};

struct onnx_attribute {
  std::string name, text;
  long type = 0, integer = 0;
  float real = 0;
  std::vector<float> reals;
  std::vector<long> integers;
  std::vector<onnx_tensor> tensor;  ///< one, or none
  bool has_graph = false;
};

struct onnx_node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<onnx_attribute> attributes;
  std::size_t number = 0;
};

/// A tensor's declaration: a dimension has a size or a symbol, or nothing is known of it.
struct onnx_declared {
  std::string name;
  long type = 0;
  bool has_shape = false;
  std::vector<std::pair<long, std::string>> dims;
};

struct onnx_file {
  std::string path;
  long opset = 0;
  std::vector<onnx_node> nodes;
  std::vector<onnx_tensor> tensors;
  std::vector<onnx_declared> inputs, outputs, values;
};

namespace detail {

inline onnx_tensor read_onnx_tensor(std::string_view bytes, const std::string& where) {
  onnx_tensor out;
  each_field(bytes, where, [&](field& f) {
    switch (f.number()) {
      case 1: return f.integers(out.dims);
      case 2: out.type = f.integer(); return;
      case 4: return f.reals(out.floats);
      case 5:
      case 7:
      case 11: return f.integers(out.integers);
      case 8: out.name = f.text(); return;
      case 9: out.raw = f.bytes(); return;
      case 10: return f.wide_reals(out.doubles);
      case 14: out.elsewhere = f.integer() == 1; return;
      default: return;
    }
  });
  return out;
}

inline onnx_attribute read_onnx_attribute(std::string_view bytes, const std::string& where) {
  onnx_attribute out;
  each_field(bytes, where, [&](field& f) {
    switch (f.number()) {
      case 1: out.name = f.text(); return;
      case 2: out.real = f.real(); return;
      case 3: out.integer = f.integer(); return;
      case 4: out.text = f.line(); return;
      case 5: out.tensor = {read_onnx_tensor(f.bytes(), where)}; return;
      case 6:
      case 11: out.has_graph = true; return;
      case 7: return f.reals(out.reals);
      case 8: return f.integers(out.integers);
      case 20: out.type = f.integer(); return;
      default: return;
    }
  });
  return out;
}

inline onnx_node read_onnx_node(std::string_view bytes, const std::string& where) {
  onnx_node out;
  each_field(bytes, where, [&](field& f) {
    switch (f.number()) {
      case 1: out.inputs.push_back(f.text()); return;
      case 2: out.outputs.push_back(f.text()); return;
      case 3: out.name = f.text(); return;
      case 4: out.op = f.text(); return;
      case 5: out.attributes.push_back(read_onnx_attribute(f.bytes(), where)); return;
      case 7: out.domain = f.text(); return;
      default: return;
    }
  });
  return out;
}

// TensorShapeProto: of each dimension a value or a parameter.
inline void read_onnx_shape(std::string_view bytes, const std::string& where, onnx_declared& out) {
  out.has_shape = true;
  each_field(bytes, where, [&](field& f) {
    if (f.number() != 1) return;
    auto& [size, symbol] = out.dims.emplace_back(-1, "");
    each_field(f.bytes(), where, [&, &size = size, &symbol = symbol](field& of) {
      if (of.number() == 1) size = of.integer();
      else if (of.number() == 2) symbol = of.text();
    });
  });
}

inline onnx_declared read_onnx_declared(std::string_view bytes, const std::string& where) {
  onnx_declared out;
  each_field(bytes, where, [&](field& f) {
    if (f.number() == 1) out.name = f.text();
    if (f.number() != 2) return;
    each_field(f.bytes(), where, [&](field& kind) {
      if (kind.number() != 1) return;  // no tensor
      each_field(kind.bytes(), where, [&](field& of) {
        if (of.number() == 1) out.type = of.integer();
        else if (of.number() == 2) read_onnx_shape(of.bytes(), where, out);
      });
    });
  });
  return out;
}

inline void read_onnx_graph(std::string_view bytes, const std::string& where, onnx_file& out) {
  each_field(bytes, where, [&](field& f) {
    switch (f.number()) {
      case 1:
        out.nodes.push_back(read_onnx_node(f.bytes(), where + ": node " + std::to_string(out.nodes.size())));
        out.nodes.back().number = out.nodes.size() - 1;
        return;
      case 5: out.tensors.push_back(read_onnx_tensor(f.bytes(), where + ": an initializer")); return;
      case 11: out.inputs.push_back(read_onnx_declared(f.bytes(), where + ": an input")); return;
      case 12: out.outputs.push_back(read_onnx_declared(f.bytes(), where + ": an output")); return;
      case 13: out.values.push_back(read_onnx_declared(f.bytes(), where + ": a value")); return;
      case 15: throw bad_input(where + ": it has sparse initializers, which are not read");
      default: return;
    }
  });
}

}  // namespace detail

/// Reads a ModelProto; what it returns has views of `bytes`. Throws bad_input for what is none.
inline onnx_file read_onnx(std::string_view bytes, const std::string& path) {
  onnx_file out;
  out.path = path;
  bool has_graph = false;
  each_field(bytes, path, [&](field& f) {
    if (f.number() == 7) {
      if (has_graph) throw bad_input(path + ": it has two graphs");
      has_graph = true;
      detail::read_onnx_graph(f.bytes(), path, out);
    } else if (f.number() == 8) {
      std::string domain;
      long version = 0;
      each_field(f.bytes(), path, [&](field& of) {
        if (of.number() == 1) domain = of.text();
        else if (of.number() == 2) version = of.integer();
      });
      if (domain.empty() || domain == "ai.onnx") out.opset = version;
    }
  });
  if (!has_graph || out.nodes.empty())
    throw bad_input(path + ": it is no ONNX model: there is no graph with nodes in it");
  return out;
}

}  // namespace cfp::graphs
