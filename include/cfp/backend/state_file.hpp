// The state of a training in one file of the safetensors format: weights and optimizer state by name, whole tensors in
// the row-major order of checkpoints, whatever the mesh. Every rank writes and reads its own pieces in place.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/backend/state_header.hpp>
#include <cfp/backend/state_numbers.hpp>
#include <cfp/file/checksum.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/file/safetensors.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/stored_weight.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

template <class T>
class state_file {
 public:
  /// A new file for the state of a training graph after `step` steps; nothing is at `path` before `commit`.
  static state_file create(const std::string& path, const graph& g, long step) {
    state_file out;
    nlohmann::ordered_json& header = out.header_;
    const std::string steps = std::to_string(step);
    header["__metadata__"] = {{"format", "pt"},
                              {"version", std::to_string(state_version)},
                              {"step", steps},
                              {step_checksum, detail::checksum(steps.data(), steps.size())}};
    std::uint64_t at = 0;
    for (int v = 0; v < g.value_count(); ++v) {
      if (!is_state(g[v])) continue;
      const std::uint64_t bytes = static_cast<std::uint64_t>(elements(g[v].shape)) * sizeof(T);
      const std::string label(g[v].label.view());
      if (header.contains(label))
        throw bad_state(path + ": two tensors are called '" + label +
                        "', a weight and optimizer state of another one: call that weight otherwise");
      header[label] = {{"dtype", dtype}, {"shape", written_shape(g[v])}, {"data_offsets", {at, at + bytes}}};
      out.say_checksum(label, std::string(8, '0'));  // of numbers that are not there yet
      at += bytes;
    }
    out.path_ = path;
    out.to_.emplace(path);
    detail::begin_safetensors<bad_state>(*out.to_, path, detail::safetensors_header(header), at);
    out.read(out.to_->beside(), g, true);
    return out;
  }

  /// An existing file, which must hold every weight and optimizer state of the graph in its shape, as they were written
  /// where it has checksums, and finite. All of it is read for that.
  static state_file open(const std::string& path, const graph& g) {
    state_file out;
    out.path_ = path;
    out.read(path, g, false);
    const std::vector<detail::seen_numbers> seen = detail::see(out.numbers());
    for (std::size_t t = 0; t < seen.size(); ++t)
      if (const held& h = out.held_[t]; !h.checksum.empty() && h.checksum != seen[t].checksum)
        throw bad_state(path + ": tensor '" + h.label + "' is not what was written" +
                        detail::damaged(seen[t].checksum, h.checksum));
    out.check_finite(seen, path);
    return out;
  }

  /// What such a file holds.
  static bool is_state(const value& v) {
    return v.producer < 0 && (v.role == value_role::weight || v.role == value_role::state);
  }

  /// Steps that were trained.
  long step() const { return step_; }
  /// What a training goes on after: it lives in this.
  training_start start() const {
    training_start out{step_, {}, path_};
    for (const held& h : held_) out.tensors.emplace(h.value, std::span<const T>(h.numbers));
    return out;
  }
  /// A whole tensor.
  T* data(int value) const { return data_.at(value); }

  /// Moves a new file to its place, over what was there. Throws bad_state if a number is not finite.
  void commit() {
    const std::vector<detail::seen_numbers> seen = detail::see(numbers());
    check_finite(seen, path_ + ": not written");
    for (std::size_t t = 0; t < seen.size(); ++t) say_checksum(held_[t].label, seen[t].checksum);
    const std::string text = detail::safetensors_header(header_);  // as long as it was
    std::memcpy(map_.file.bytes().data() + 8, text.data(), text.size());
    if (!map_.file.flush()) throw bad_state(path_ + ": cannot be written");
    to_->take_name();
  }

 private:
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  static constexpr const char* dtype = sizeof(T) == 4 ? "F32" : "F64";

  struct held {
    int value;
    std::string label, checksum;
    std::span<T> numbers;
  };

  void say_checksum(const std::string& label, const std::string& checksum) {
    header_["__metadata__"][std::string(tensor_checksum) + label] = checksum;
  }
  std::vector<std::span<T>> numbers() const {
    std::vector<std::span<T>> out;
    for (const held& h : held_) out.push_back(h.numbers);
    return out;
  }
  void check_finite(const std::vector<detail::seen_numbers>& seen, const std::string& where) const {
    for (std::size_t t = 0; t < seen.size(); ++t)
      if (const held& h = held_[t]; seen[t].finite < h.numbers.size())
        throw bad_state(where + ": tensor '" + h.label + "' holds " + shown(h.numbers[seen[t].finite]) + " at place " +
                        std::to_string(seen[t].finite) +
                        ", which is no finite number, and no training goes on from it: take an earlier state");
  }
  static std::string shown(T number) { return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf"; }

  void read(const std::string& file, const graph& g, bool written) {
    map_ = detail::safetensors_map::of<bad_state>(file, path_, written);
    const std::uint64_t size = map_.header.size(), all = map_.file.bytes().size();
    const state_header header = read_state_header(map_.header, path_ + ": header");
    if ((8 + size) % sizeof(T) != 0)
      throw bad_state(path_ + ": its header has " + std::to_string(size) +
                      " bytes, so that tensors are not aligned to " + std::to_string(sizeof(T)) +
                      ": pad it with spaces, as the library safetensors does");
    step_ = header.step;
    std::map<std::uint64_t, std::uint64_t> taken;  // bytes of tensors: from, to
    for (int v = 0; v < g.value_count(); ++v) {
      if (!is_state(g[v])) continue;
      const std::string label(g[v].label.view());
      const auto fail = [&](const std::string& why) { return bad_state(path_ + ": tensor '" + label + "' " + why); };
      const auto at = header.tensors.find(label);
      if (at == header.tensors.end()) {
        const bool of_optimizer = g[v].role == value_role::state && !held_.empty();
        throw fail(std::string("is missing; the state is of another ") + (of_optimizer ? "optimizer" : "model"));
      }
      const state_header::tensor& t = at->second;
      const std::string shape = nlohmann::json(written_shape(g[v])).dump();
      if (t.type != dtype) throw fail("holds \"" + t.type + "\", wanted are \"" + dtype + "\"");
      if (t.shape != shape) throw fail("has shape " + t.shape + ", the model's is " + shape);
      if (t.to < t.from || t.to - t.from != static_cast<std::uint64_t>(elements(g[v].shape)) * sizeof(T) ||
          t.to > all - 8 - size || (8 + size + t.from) % sizeof(T) != 0)
        throw fail("lies at bytes " + std::to_string(t.from) + " to " + std::to_string(t.to) +
                   ", which is not its size or not in the file; is it cut short?");
      data_[v] = reinterpret_cast<T*>(map_.tensors.data() + t.from);
      held_.push_back({v, label, t.checksum, std::span(data_[v], static_cast<std::size_t>(elements(g[v].shape)))});
      if (!taken.emplace(t.from, t.to).second) throw fail("lies where another one does");
    }
    check_nothing_else(header, g);
    std::uint64_t end = 0;  // as the format asks, tensors lie side by side and fill the file
    for (const auto& [from, to] : taken) {
      if (from != end)
        throw bad_state(path_ + ": a tensor begins at byte " + std::to_string(from) + " and those before it end at " +
                        std::to_string(end) + ": they share bytes, or leave some out");
      end = to;
    }
    if (end != all - 8 - size)
      throw bad_state(path_ + ": its tensors end at byte " + std::to_string(end) + " of " +
                      std::to_string(all - 8 - size) + ": something is behind them");
  }
  void check_nothing_else(const state_header& header, const graph& g) const {
    if (header.tensors.size() == data_.size()) return;
    for (const auto& [label, t] : header.tensors) {
      bool ours = false;
      for (int v = 0; v < g.value_count() && !ours; ++v) ours = is_state(g[v]) && g[v].label.view() == label;
      if (!ours)
        throw bad_state(path_ + ": holds tensor '" + label + "', which this model has not; it is another's state");
    }
  }

  std::string path_;
  std::optional<new_file> to_;
  detail::safetensors_map map_;
  nlohmann::ordered_json header_;  // of a new file
  std::map<int, T*> data_;
  std::vector<held> held_;
  long step_ = 0;
};

}  // namespace cfp
