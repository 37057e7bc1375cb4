// Messages of protocol buffers, field by field, as protozero reads them. Without protozero nothing is read, and that is
// said.
#pragma once

#include <cfp/core/bad_input.hpp>

#if __has_include(<protozero/pbf_message.hpp>)
#define CFP_WITH_PROTOZERO
#include <protozero/pbf_reader.hpp>
#endif

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace cfp::inline v0_1::graphs {

#if defined(CFP_WITH_PROTOZERO)

/// One field of a message. What it holds must be asked for as what it is: else bad_input says so.
class field {
 public:
  field(protozero::pbf_reader& at, const std::string& where) : at_(at), where_(where) {}

  std::uint32_t number() const { return at_.tag(); }
  bool was_read() const { return read_; }
  std::string_view bytes() {
    need(at_.wire_type() == protozero::pbf_wire_type::length_delimited);
    const protozero::data_view v = at_.get_view();
    return {v.data(), v.size()};
  }
  /// A name, which must be one line.
  std::string text() {
    const std::string_view all = bytes();
    for (const char c : all)
      if (static_cast<unsigned char>(c) < ' ') throw bad_input(where_ + ": a name has a control character in it");
    return std::string(all);
  }
  /// A text, on one line.
  std::string line() {
    std::string out(bytes());
    for (char& c : out)
      if (static_cast<unsigned char>(c) < ' ') c = '_';
    return out;
  }
  long integer() {
    need(at_.wire_type() == protozero::pbf_wire_type::varint);
    return static_cast<long>(at_.get_int64());
  }
  float real() {
    need(at_.wire_type() == protozero::pbf_wire_type::fixed32);
    return at_.get_float();
  }
  double wide_real() {
    need(at_.wire_type() == protozero::pbf_wire_type::fixed64);
    return at_.get_double();
  }
  /// Numbers of a repeated field, packed or one at a time.
  void integers(std::vector<long>& to) {
    if (at_.wire_type() == protozero::pbf_wire_type::varint) return to.push_back(integer());
    need(at_.wire_type() == protozero::pbf_wire_type::length_delimited);
    for (const std::int64_t n : at_.get_packed_int64()) to.push_back(static_cast<long>(n));
  }
  void reals(std::vector<float>& to) {
    if (at_.wire_type() == protozero::pbf_wire_type::fixed32) return to.push_back(real());
    packed<float>(to);
  }
  void wide_reals(std::vector<double>& to) {
    if (at_.wire_type() == protozero::pbf_wire_type::fixed64) return to.push_back(wide_real());
    packed<double>(to);
  }

 private:
  template <class T>
  void packed(std::vector<T>& to) {
    const std::string_view all = bytes();
    need(all.size() % sizeof(T) == 0);
    const std::size_t first = to.size(), n = all.size() / sizeof(T);
    to.resize(first + n);
    if (n > 0) std::memcpy(to.data() + first, all.data(), all.size());
  }
  void need(bool is) {
    read_ = true;
    if (!is) throw bad_input(where_ + ": field " + std::to_string(number()) + " is not of the type it should have");
  }

  protozero::pbf_reader& at_;
  const std::string& where_;
  bool read_ = false;
};

/// Calls f(field&) for each field of a message; what it does not read is skipped. `where`: file and what is read of it.
template <class F>
void each_field(std::string_view message, const std::string& where, F&& f) {
  try {
    protozero::pbf_reader at(message.data(), message.size());
    while (at.next()) {
      field one(at, where);
      f(one);
      if (!one.was_read()) at.skip();
    }
  } catch (const protozero::exception& e) {
    throw bad_input(where + ": it is cut off or no such file (" + e.what() + ")");
  }
}

#else

struct field {
  std::uint32_t number() const { return 0; }
  std::string_view bytes() { return {}; }
  std::string text() { return {}; }
  std::string line() { return {}; }
  long integer() { return 0; }
  float real() { return 0; }
  double wide_real() { return 0; }
  void integers(std::vector<long>&) {}
  void reals(std::vector<float>&) {}
  void wide_reals(std::vector<double>&) {}
};
template <class F>
void each_field(std::string_view, const std::string& where, F&&) {
  throw bad_input(where + ": this program was built without protozero; install libprotozero-dev and build it again");
}

#endif

}  // namespace cfp::graphs
