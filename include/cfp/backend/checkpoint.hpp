// Weights of a public checkpoint, for a graph whose layout says where each is; and written back.
#pragma once

#include <cfp/backend/stored_numbers.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/file/checkpoint_files.hpp>
#include <cfp/model/stored_weight.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cfp::inline v0_1 {

namespace detail {

inline std::string shape_text(const std::vector<long>& shape) { return nlohmann::json(shape).dump(); }

inline bool is_weight(const value& v) { return v.producer < 0 && v.role == value_role::weight; }

/// Whether a tensor is what programs store beside weights and compute anew: masks of attention (a bias of it has one
/// dimension, and is none of these), frequencies of rotary positions, numbers of places.
inline bool is_computed(std::string_view called, const checkpoint_tensor& t) {
  const auto ends = [&](std::string_view end) { return called.ends_with(end); };
  if (ends(".attn.bias") || ends(".attention.bias")) return t.shape.size() == 4;
  if (ends(".attn.masked_bias") || ends(".attention.masked_bias")) return t.elements() == 1;
  return ends("rotary_emb.inv_freq") || ends("position_ids");
}

/// Whether a name is that of one of several alike: "h.3.attn.c_proj.weight".
inline bool is_numbered(std::string_view called) {
  for (std::size_t from = 0; from < called.size();) {
    const std::size_t to = std::min(called.find('.', from), called.size());
    if (to > from && called.substr(from, to - from).find_first_not_of("0123456789") == std::string_view::npos)
      return true;
    from = to + 1;
  }
  return false;
}

/// Where a layout has a weight of a graph.
inline stored_weight stored(const weight_layout& layout, const value& v) {
  const std::string label(v.label.view());
  const std::vector<long> shape = written_shape(v);
  return layout ? layout(label, shape) : stored_weight::plain(label, shape);
}

}  // namespace detail

/// Names of a checkpoint beside those of a graph: a prefix more or less, as models are saved with and without what
/// stands around them.
class checkpoint_names {
 public:
  checkpoint_names() = default;
  /// `known`: a name that the graph has.
  checkpoint_names(const std::map<std::string, checkpoint_tensor>& tensors, const std::string& known)
      : tensors_(&tensors) {
    if (tensors.count(known) > 0) return;
    for (const auto& [called, t] : tensors)
      if (called.ends_with("." + known)) prefix_ = called.substr(0, called.size() - known.size());
  }

  /// That by which the checkpoint has it, or the name itself.
  std::string operator()(const std::string& tensor) const {
    if (tensors_ == nullptr || tensors_->count(tensor) > 0) return tensor;
    if (!prefix_.empty() && tensors_->count(prefix_ + tensor) > 0) return prefix_ + tensor;
    const std::size_t dot = tensor.find('.');
    if (dot != std::string::npos && tensors_->count(tensor.substr(dot + 1)) > 0) return tensor.substr(dot + 1);
    return tensor;
  }

 private:
  const std::map<std::string, checkpoint_tensor>* tensors_ = nullptr;
  std::string prefix_;
};

class checkpoint {
 public:
  /// Throws bad_input, a sentence that names file and tensor, unless it has every weight of the graph in its shape, and
  /// nothing else but what says nothing of the model: masks and tables that are computed, copies of tied weights.
  checkpoint(const std::string& path, const graph& g, const weight_layout& layout = {})
      : files_(std::make_shared<checkpoint_files>(path)) {
    std::set<std::string> used;
    for (int v = 0; v < g.value_count(); ++v) {
      if (!detail::is_weight(g[v])) continue;
      const stored_weight w = detail::stored(layout, g[v]);
      if (used.empty()) names_ = checkpoint_names(files_->tensors(), w.tensors.front());
      take(v, w, used);
    }
    check_rest(used);
  }

  const std::string& path() const { return files_->path(); }
  const std::map<int, stored_numbers>& weights() const { return weights_; }
  /// What the checkpoint calls a tensor of the layout.
  std::string name_of(const std::string& tensor) const { return names_(tensor); }
  stored_type type(const std::string& tensor) const {
    return *stored_type_of(files_->tensors().at(name_of(tensor)).type);
  }

 private:
  bad_input fail(const std::string& tensor, const std::string& why) const {
    return bad_input(path() + ": tensor '" + tensor + "' " + why);
  }
  void take(int value, const stored_weight& w, std::set<std::string>& used) {
    std::vector<std::byte*> at;
    std::optional<stored_type> type;
    for (const std::string& of : w.tensors) {
      const std::string called = names_(of);
      const auto found = files_->tensors().find(called);
      if (found == files_->tensors().end()) throw fail(of, "is missing; is it another model's checkpoint?");
      const checkpoint_tensor& t = found->second;
      const std::optional<stored_type> is = stored_type_of(t.type);
      if (!is) throw fail(called, "holds \"" + t.type + "\"; read are \"F64\", \"F32\", \"BF16\" and \"F16\"");
      if (type && *is != *type) throw fail(called, "holds \"" + t.type + "\", and the experts before it another type");
      if (t.shape != w.shape)
        throw fail(called,
                   "has shape " + detail::shape_text(t.shape) + ", the model's is " + detail::shape_text(w.shape));
      if (t.bytes.size() != static_cast<std::size_t>(t.elements()) * width(*is))
        throw fail(called, "has " + std::to_string(t.bytes.size()) + " bytes, which is not what " +
                               detail::shape_text(t.shape) + " numbers of " + t.type + " take");
      at.push_back(t.bytes.data());
      type = is;
      used.insert(called);
    }
    weights_.emplace(value, stored_numbers(*type, std::move(at), w.first, w.walk));
  }
  void check_rest(const std::set<std::string>& used) const {
    for (const auto& [called, t] : files_->tensors()) {
      if (used.count(called) > 0 || detail::is_computed(called, t)) continue;
      const auto is_copy = [&, &copy = t, &named = called](const std::string& of) {
        if (detail::is_numbered(named) || detail::is_numbered(of)) return false;  // another layer, however alike
        const checkpoint_tensor& other = files_->tensors().at(of);
        return other.type == copy.type && other.shape == copy.shape && other.bytes.size() == copy.bytes.size() &&
               std::equal(other.bytes.begin(), other.bytes.end(), copy.bytes.begin());
      };
      if (std::none_of(used.begin(), used.end(), is_copy))
        throw fail(called, "is none of this model's weights, and no copy of one; is it another model's checkpoint?");
    }
  }

  std::shared_ptr<checkpoint_files> files_;
  checkpoint_names names_;
  std::map<int, stored_numbers> weights_;
};

/// A new checkpoint, one file with the names of the layout: those, and the types of numbers, of the checkpoint that the
/// weights came from, if there is one. Nothing is at `path` before `commit`.
class new_checkpoint {
 public:
  new_checkpoint(const std::string& path, const graph& g, const weight_layout& layout, const checkpoint* like)
      : path_(path), to_(path) {
    struct planned {
      std::uint64_t from = 0;
      stored_type type{};
      long left = 0;  // numbers that are no weight's so far
    };
    std::map<std::string, planned> tensors;
    nlohmann::ordered_json header;
    header["__metadata__"] = {{"format", "pt"}};
    std::uint64_t bytes = 0;
    std::vector<std::pair<int, stored_weight>> weights;
    for (int v = 0; v < g.value_count(); ++v) {
      if (!detail::is_weight(g[v])) continue;
      stored_weight w = detail::stored(layout, g[v]);
      for (std::string& of : w.tensors) {
        const stored_type type = like != nullptr ? like->type(of) : stored_type::float32;
        if (like != nullptr) of = like->name_of(of);
        auto [at, is_new] = tensors.try_emplace(of, planned{bytes, type, 1});
        if (is_new) {
          for (const long n : w.shape) at->second.left *= n;
          bytes += static_cast<std::uint64_t>(at->second.left) * width(type);
          header[of] = {{"dtype", stored_type_names[static_cast<std::size_t>(type)]},
                        {"shape", w.shape},
                        {"data_offsets", {at->second.from, bytes}}};
        }
        at->second.left -= elements(g[v].shape) / static_cast<long>(w.tensors.size());
      }
      weights.emplace_back(v, std::move(w));
    }
    for (const auto& [called, t] : tensors)
      if (t.left != 0)
        throw bad_input(path + ": tensor '" + called + "' has " + std::to_string(t.left) +
                        " numbers more than this model has weights in it");
    const std::string text = detail::safetensors_header(header);
    detail::begin_safetensors<bad_input>(to_, path, text, bytes);
    map_ = detail::safetensors_map::of<bad_input>(to_.beside(), path, true);
    for (const auto& [v, w] : weights) {
      std::vector<std::byte*> at;
      for (const std::string& of : w.tensors) at.push_back(map_.tensors.data() + tensors.at(of).from);
      weights_.emplace(v, stored_numbers(tensors.at(w.tensors.front()).type, std::move(at), w.first, w.walk));
    }
  }

  const std::map<int, stored_numbers>& weights() const { return weights_; }

  /// Moves it to its place, over what was there.
  void commit() {
    if (!map_.file.flush()) throw bad_input(path_ + ": cannot be written");
    to_.take_name();
  }

 private:
  std::string path_;
  new_file to_;
  detail::safetensors_map map_;
  std::map<int, stored_numbers> weights_;
};

}  // namespace cfp
