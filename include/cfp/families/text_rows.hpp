// Batches cut from a text of tokens.
#pragma once

#include <cfp/families/text_layout.hpp>
#include <cfp/model/graph.hpp>
#include <cfp/model/random_words.hpp>

#include <cstdint>
#include <utility>

namespace cfp::inline v0_1::families {

/// Each batch takes other places of the text, the same for every mesh, and the same rows however a step cuts its batch
/// into passes. To be used as a `batch_source`. `Text` has a size and tokens by place.
template <class Text>
class text_rows {
 public:
  /// Rows of `length` tokens, or images of so many bytes (`text_layout::length`); the text must be longer than a row
  /// and what the layout reads behind it.
  text_rows(Text text, long rows, long length, std::uint64_t seed, text_layout layout = {})
      : text_(std::move(text)), rows_(rows), length_(length), seed_(seed), layout_(std::move(layout)) {
    if (!layout_.positions) return;
    std::vector<std::int32_t> positions;
    for (long i = 0; i < length_; ++i) positions.push_back(static_cast<std::int32_t>(layout_.first_position + i));
    layout_.fixed["positions"] = std::move(positions);
  }

  batch operator()(long number) const {
    if (layout_.image_rows > 0) return images(number);
    batch out = layout_.fixed;
    for (const auto& [label, shift] : layout_.reads) {
      std::vector<std::int32_t> rows;
      for (long r = 0; r < rows_; ++r) {
        const std::size_t from = place_of(number * rows_ + r) + static_cast<std::size_t>(shift);
        for (long i = 0; i < length_; ++i) rows.push_back(text_[from + static_cast<std::size_t>(i)]);
      }
      out[label] = std::move(rows);
    }
    if (layout_.hidden_as >= 0) hide(number, out);
    return out;
  }

 private:
  // Bytes as numbers from -1 to 1, and as the label the byte behind them.
  batch images(long number) const {
    std::vector<float> patches;
    std::vector<std::int32_t> labels;
    for (long r = 0; r < rows_; ++r) {
      const std::size_t from = place_of(number * rows_ + r);
      patches.insert(patches.end(), static_cast<std::size_t>(layout_.image_numbers), 0.0f);
      for (long i = 0; i < length_; ++i)
        patches.push_back(static_cast<float>(text_[from + static_cast<std::size_t>(i)]) / 128 - 1);
      labels.push_back(text_[from + static_cast<std::size_t>(length_)]);
    }
    batch out;
    out["patches"] = std::move(patches), out["targets"] = std::move(labels);
    return out;
  }
  void hide(long number, batch& rows) const {
    auto &tokens = std::get<std::vector<std::int32_t>>(rows.at("tokens")),
         &targets = std::get<std::vector<std::int32_t>>(rows.at("targets"));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool hidden =
          random_words(seed_, 1, static_cast<std::uint64_t>(number) * tokens.size() + i).v[0] % 100 < 15;
      if (hidden) tokens[i] = layout_.hidden_as;
      else targets[i] = ignored_target;
    }
  }
  std::size_t place_of(long row) const {
    const auto word = random_words(seed_, 0, static_cast<std::uint64_t>(row)).v[0];
    return word % (text_.size() - static_cast<std::size_t>(length_ + layout_.reach() - 1));
  }

  Text text_;
  long rows_, length_;
  std::uint64_t seed_;
  text_layout layout_;
};

}  // namespace cfp::families
