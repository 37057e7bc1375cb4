// What the header of a safetensors file says: where each tensor lies, and after how many steps.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/checksum.hpp>
#include <cfp/file/safetensors.hpp>

#include <algorithm>
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

/// Metadata that not all files have: the checksum of the step's text, and with a tensor's name behind it that of its
/// bytes.
inline constexpr std::string_view step_checksum = "crc32", tensor_checksum = "crc32 ";

struct state_header {
  struct tensor {
    std::string type, shape;         ///< "F32", "[2,3]"
    std::uint64_t from = 0, to = 0;  ///< bytes behind the header
    std::string checksum{};          ///< none: it was written without
  };
  long step = 0;
  std::map<std::string, tensor> tensors;
};

namespace detail {

/// The end of a sentence on what has changed in a file.
inline std::string damaged(const std::string& checksum, std::string written) {
  for (char& c : written)  // it is whatever the file says
    if (static_cast<unsigned char>(c) < ' ') c = '?';
  return ": its checksum is " + checksum + ", the file says " + written +
         "; the file was damaged since: take another copy of it, or an earlier state";
}

class state_header_reader : safetensors_reader<bad_state> {
 public:
  using safetensors_reader::safetensors_reader;

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
    checksums(metadata, step, out);
    return out;
  }

 private:
  // All or none, so that one whose name has changed is missed.
  void checksums(const json& metadata, const std::string& step, state_header& out) const {
    const auto is_one = [](const auto& item) { return item.key().starts_with(step_checksum); };
    if (const auto all = metadata.items(); std::none_of(all.begin(), all.end(), is_one)) return;
    const auto of = [&](const std::string& key, const std::string& what) {
      const auto at = metadata.find(key);
      if (at == metadata.end()) refuse("'__metadata__' has checksums, and none of " + what);
      return text(*at, "the checksum of " + what);
    };
    const std::string written = of(std::string(step_checksum), "the step"), is = checksum(step.data(), step.size());
    if (is != written) refuse("its step, " + shown(json(step)) + ", is not what was written" + damaged(is, written));
    for (auto& [label, t] : out.tensors)
      t.checksum = of(std::string(tensor_checksum) + label, "tensor '" + label + "'");
  }
  state_header::tensor tensor(const json& value, const std::string& owner) const {
    const safetensors_entry e = entry(value, owner);
    std::string shape = "[";
    for (const json& size : *e.shape) shape += (shape.size() > 1 ? "," : "") + shown(size);
    return {e.type, shape + "]", e.from, e.to, ""};
  }
};

}  // namespace detail

/// Throws bad_state, whose sentence begins with `where`.
inline state_header read_state_header(std::string_view text, std::string where) {
  return detail::state_header_reader(text, std::move(where)).run();
}

}  // namespace cfp
