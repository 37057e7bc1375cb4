// The tensors of a public checkpoint: one safetensors file, or several and an index that says which has what.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/safetensors.hpp>
#include <cfp/file/whole_file.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

/// A tensor of a checkpoint, where it is mapped.
struct checkpoint_tensor {
  std::string type;  ///< "BF16"
  std::vector<long> shape;
  std::span<std::byte> bytes;

  long elements() const {
    long n = 1;
    for (const long size : shape) n *= size;
    return n;
  }
};

namespace detail {

class checkpoint_header_reader : safetensors_reader<bad_input> {
 public:
  using safetensors_reader::safetensors_reader;

  /// `behind`: what stands behind the header.
  std::map<std::string, checkpoint_tensor> run(std::span<std::byte> behind) const {
    const json all = parsed();
    object(all, "it");
    std::map<std::string, checkpoint_tensor> out;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;  // from, to
    for (const auto& [label, t] : all.items()) {
      if (label == "__metadata__") continue;
      const std::string owner = "tensor '" + label + "'";
      const safetensors_entry e = entry(t, owner);
      if (e.from > e.to || e.to > behind.size())
        refuse(owner + " lies at bytes " + std::to_string(e.from) + " to " + std::to_string(e.to) + " of " +
               std::to_string(behind.size()) + " behind the header: is the file cut short?");
      checkpoint_tensor& made = out[label];
      made = {e.type, sizes(*e.shape, owner), behind.subspan(e.from, e.to - e.from)};
      if (e.from < e.to) taken.emplace_back(e.from, e.to);
    }
    std::sort(taken.begin(), taken.end());
    for (std::size_t i = 1; i < taken.size(); ++i)
      if (taken[i].first < taken[i - 1].second)
        refuse("a tensor begins at byte " + std::to_string(taken[i].first) + " and the one before ends at " +
               std::to_string(taken[i - 1].second) + ": they share bytes");
    return out;
  }

 private:
  std::vector<long> sizes(const json& shape, const std::string& owner) const {
    constexpr long most = std::numeric_limits<long>::max() / 16;  // so that bytes can be counted
    std::vector<long> out;
    long all = 1;
    for (const json& n : shape) {
      if (!n.is_number_unsigned() || n.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
        refuse(owner + ".shape must be of whole numbers, has " + shown(n));
      const long size = n.get<long>();
      if (size > 0 && all > most / size) refuse(owner + ".shape is of more numbers than can be counted");
      out.push_back(size);
      all *= size;
    }
    return out;
  }
};

class checkpoint_index_reader : json_reader<bad_input> {
 public:
  using json_reader::json_reader;

  /// Of each tensor the file.
  std::map<std::string, std::string> run() const {
    const json all = parsed();
    object(all, "it");
    std::map<std::string, std::string> out;
    for (const auto& [label, file] : object(member(all, "it", "weight_map"), "'weight_map'").items()) {
      const std::string name = text(file, "the file of tensor '" + label + "'");
      if (name.empty() || std::filesystem::path(name).filename() != name || name == "." || name == "..")
        refuse("the file of tensor '" + label + "' must be one beside the index, is '" + name + "'");
      out[label] = name;
    }
    if (out.empty()) refuse("its 'weight_map' names no tensor");
    return out;
  }
};

}  // namespace detail

class checkpoint_files {
 public:
  /// Of a folder what is opened, or the file itself. Throws bad_input for a folder with neither.
  static std::string file_of(const std::string& path) {
    namespace fs = std::filesystem;
    std::error_code none;
    if (!fs::is_directory(path, none)) return path;
    const fs::path index = fs::path(path) / "model.safetensors.index.json", one = fs::path(path) / "model.safetensors";
    if (fs::is_regular_file(index, none)) return index.string();
    if (fs::is_regular_file(one, none)) return one.string();
    throw bad_input(path + ": has neither model.safetensors nor model.safetensors.index.json");
  }

  /// A safetensors file, an index (JSON), or a folder that has model.safetensors.index.json or model.safetensors. Reads
  /// headers alone. Throws bad_input, a sentence that names the file.
  explicit checkpoint_files(const std::string& path) : path_(file_of(path)) {
    if (std::filesystem::path(path_).extension() != ".json") {
      for (auto& [label, t] : read(path_)) tensors_.emplace(label, std::move(t));
      return;
    }
    const std::optional<std::string> text = detail::whole_file(path_);
    if (!text) throw bad_input(path_ + detail::unreadable(path_));
    std::map<std::string, std::map<std::string, checkpoint_tensor>> by_file;
    for (const auto& [label, file] : detail::checkpoint_index_reader(*text, path_).run()) {
      const std::string at = (std::filesystem::path(path_).parent_path() / file).string();
      if (by_file.count(file) == 0) by_file[file] = read(at);
      const auto found = by_file[file].find(label);
      if (found == by_file[file].end())
        throw bad_input(path_ + ": says that tensor '" + label + "' is in " + at + ", which has none of that name");
      tensors_.emplace(label, found->second);
    }
  }

  const std::string& path() const { return path_; }  ///< of the file that was opened first
  const std::map<std::string, checkpoint_tensor>& tensors() const { return tensors_; }

 private:
  std::map<std::string, checkpoint_tensor> read(const std::string& file) {
    maps_.push_back(detail::safetensors_map::of<bad_input>(file, file));
    return detail::checkpoint_header_reader(maps_.back().header, file + ": header").run(maps_.back().tensors);
  }

  std::string path_;
  std::vector<detail::safetensors_map> maps_;
  std::map<std::string, checkpoint_tensor> tensors_;
};

}  // namespace cfp
