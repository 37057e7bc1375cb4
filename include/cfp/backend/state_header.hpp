// What the header of a safetensors file says: where each tensor lies, and after how many steps.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/json_reader.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cfp::inline v0_1 {

/// A state that cannot be read or written: one sentence that names the file and what is wrong with it.
struct bad_state : bad_input {
  using bad_input::bad_input;
};

inline constexpr int state_version = 1;
inline constexpr long most_steps = 1'000'000'000'000;

struct state_header {
  struct tensor {
    std::string type, shape;         ///< "F32", "[2,3]"
    std::uint64_t from = 0, to = 0;  ///< bytes behind the header
  };
  long step = 0;
  std::map<std::string, tensor> tensors;
};

namespace detail {

class state_header_reader : json_reader<bad_state> {
 public:
  using json_reader::json_reader;

  state_header run() const {
    const json all = parsed();
    object(all, "it");
    state_header out;
    const json& metadata = object(member(all, "it", "__metadata__"), "'__metadata__'");
    const json& version = member(metadata, "'__metadata__'", "version");  // a text, as all of it is
    if (version != std::to_string(state_version))
      refuse("is of version " + shown(version) + ", this reads " + std::to_string(state_version));
    const std::string step = text(member(metadata, "'__metadata__'", "step"), "its step");
    const auto [end, failed] = std::from_chars(step.data(), step.data() + step.size(), out.step);
    if (failed != std::errc() || end != step.data() + step.size() || out.step < 0)
      refuse("its step must be a whole number, got " + shown(json(step)));
    if (out.step > most_steps)
      refuse("its step is " + step + ", at most " + std::to_string(most_steps) + " are counted");
    for (const auto& [label, t] : all.items())
      if (label != "__metadata__") out.tensors[label] = tensor(t, "tensor '" + label + "'");
    return out;
  }

 private:
  state_header::tensor tensor(const json& value, const std::string& owner) const {
    object(value, owner);
    const json& bytes = array(member(value, owner, "data_offsets"), owner + ".data_offsets");
    if (bytes.size() != 2 || !bytes[0].is_number_unsigned() || !bytes[1].is_number_unsigned())
      refuse(owner + ".data_offsets must be the bytes it begins and ends at");
    std::string shape = "[";
    for (const json& size : array(member(value, owner, "shape"), owner + ".shape"))
      shape += (shape.size() > 1 ? "," : "") + shown(size);
    return {text(member(value, owner, "dtype"), owner + ".dtype"), shape + "]", bytes[0].get<std::uint64_t>(),
            bytes[1].get<std::uint64_t>()};
  }
};

}  // namespace detail

/// Throws bad_state, whose sentence begins with `where`.
inline state_header read_state_header(std::string_view text, std::string where) {
  return detail::state_header_reader(text, std::move(where)).run();
}

}  // namespace cfp
