// One node of an ONNX graph as it is translated: its operands, and its attributes by name.
#pragma once

#include <cfp/graphs/onnx_file.hpp>
#include <cfp/graphs/onnx_numbers.hpp>
#include <cfp/graphs/row_operators.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

/// What is wrong is thrown as bad_input; the reader puts file and node before it.
struct onnx_call {
  row_operators& p;
  const onnx_node& node;
  std::vector<held> in;     ///< of what is left out nothing is set
  std::vector<bool> there;  ///< whether it is given
  long opset = 0;

  const onnx_attribute* find(std::string_view name) const {
    for (const onnx_attribute& a : node.attributes)
      if (a.name == name) return &a;
    return nullptr;
  }
  long integer(std::string_view name, long otherwise) const {
    const onnx_attribute* const a = find(name);
    return a == nullptr ? otherwise : a->integer;
  }
  double real(std::string_view name, double otherwise) const {
    const onnx_attribute* const a = find(name);
    return a == nullptr ? otherwise : static_cast<double>(a->real);
  }
  std::string text(std::string_view name, const std::string& otherwise) const {
    const onnx_attribute* const a = find(name);
    return a == nullptr ? otherwise : a->text;
  }
  std::vector<long> integers(std::string_view name) const {
    const onnx_attribute* const a = find(name);
    return a == nullptr ? std::vector<long>{} : a->integers;
  }

  bool has(std::size_t i) const { return i < in.size() && there[i]; }
  const held& operand(std::size_t i) const {
    if (!has(i)) throw bad_input("operand " + std::to_string(i) + " is missing");
    return in[i];
  }
  /// What the file tells of an operand.
  const constant& known(std::size_t i) const {
    const held& h = operand(i);
    if (!h.known)
      throw bad_input("operand " + std::to_string(i) + " '" + node.inputs[i] +
                      "' must be known when the file is read, it is computed");
    return *h.known;
  }
  std::vector<long> known_integers(std::size_t i) const {
    std::vector<long> out;
    for (const double x : known(i).at) {
      if (!(x > -9.3e18 && x < 9.3e18)) throw bad_input("operand " + std::to_string(i) + " holds no whole numbers");
      constexpr double most = 9007199254740992.0;  // 2^53: what is beyond means the end
      out.push_back(static_cast<long>(x < -most ? -most : x > most ? most : x));
    }
    return out;
  }
  /// Axes of operand 0 by attribute, as old files have them, or by an operand.
  bool axes_of(std::size_t by_operand, std::size_t rank, axes& out) const {
    const bool given = has(by_operand) || find("axes") != nullptr;
    for (const long a : has(by_operand) ? known_integers(by_operand) : integers("axes")) {
      const std::size_t d = axis_of(a, rank);
      for (const std::size_t other : out)
        if (d == other) throw bad_input("axis " + std::to_string(a) + " stands twice");
      out.push_back(d);
    }
    return given;
  }
  /// Attributes as text: what tells two unknown operators of one name apart.
  std::string attributes() const {
    std::string out;
    for (const onnx_attribute& a : node.attributes) {
      out.append(out.empty() ? "" : " ").append(a.name).append("=").append(a.text);
      if (a.type == 1 || a.real != 0) out += std::to_string(a.real);
      if (a.type == 2 || a.integer != 0) out += std::to_string(a.integer);
      for (const long n : a.integers) out += std::to_string(n) + ",";
      for (const float x : a.reals) out += std::to_string(x) + ",";
    }
    for (char& c : out)
      if (static_cast<unsigned char>(c) < ' ' || c == '<' || c == '>' || c == '"' || c == '\\') c = '_';
    return out;
  }
};

/// Results of a node; none where the operator is not one that is known, as it is used here.
using onnx_results = std::vector<held>;

}  // namespace cfp::graphs
