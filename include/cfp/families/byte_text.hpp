// A text whose bytes are the tokens.
#pragma once

#include <cfp/families/text_rows.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace cfp::inline v0_1::families {

class text_bytes {
 public:
  text_bytes(std::string text) : text_(std::move(text)) {}
  text_bytes(const char* text) : text_(text) {}
  std::size_t size() const { return text_.size(); }
  std::int32_t operator[](std::size_t i) const { return static_cast<unsigned char>(text_[i]); }

 private:
  std::string text_;
};

using byte_text = text_rows<text_bytes>;

}  // namespace cfp::families
