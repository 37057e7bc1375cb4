// Tokens as llm.c and nanoGPT write them: whole numbers of 16 or 32 bits, one behind the other.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/file/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

namespace cfp::inline v0_1::families {

/// A file of tokens, of which is read what is asked for. With the header of llm.c (256 numbers of 32 bits: 20240520, 1
/// and how many tokens of 16 bits follow; 20240801, 7 and how many of 32), or without, as nanoGPT has them: of 16 bits,
/// where the vocabulary has more than 65,536 words of 32.
class token_file {
 public:
  /// Throws bad_input for a file that is none, naming it.
  token_file(const std::string& path, long vocabulary)
      : path_(path), vocabulary_(vocabulary),
        file_(std::make_shared<mapped_file>(mapped_file::of<bad_input>(path, path))) {
    const std::span<const std::byte> all = file_->bytes();
    const std::int32_t magic = all.size() >= header ? number(0) : 0;
    if (magic == of_16 || magic == of_32) {
      width_ = magic == of_16 ? 2 : 4;
      const std::int32_t version = number(1), wanted = magic == of_16 ? 1 : 7, count = number(2);
      if (version != wanted)
        throw bad_input(path + ": its header is of version " + std::to_string(version) + ", read is " +
                        std::to_string(wanted));
      at_ = all.data() + header;
      const std::size_t there = all.size() - header;
      if (count < 0 || there != static_cast<std::size_t>(count) * width_)
        throw bad_input(path + ": its header says " + std::to_string(count) + " tokens of " +
                        std::to_string(8 * width_) + " bits, and " + std::to_string(there) +
                        " bytes are behind it; is it cut short?");
      size_ = static_cast<std::size_t>(count);
      return;
    }
    width_ = vocabulary > 65536 ? 4 : 2;
    if (all.size() % width_ != 0)
      throw bad_input(path + ": has " + std::to_string(all.size()) + " bytes, which are no whole tokens of " +
                      std::to_string(8 * width_) + " bits");
    at_ = all.data();
    size_ = all.size() / width_;
  }

  std::size_t size() const { return size_; }
  /// Throws bad_input where it is no word of the vocabulary.
  std::int32_t operator[](std::size_t i) const {
    std::uint32_t token = 0;
    if (width_ == 4) {
      std::memcpy(&token, at_ + 4 * i, 4);
    } else {
      std::uint16_t narrow = 0;
      std::memcpy(&narrow, at_ + 2 * i, 2);
      token = narrow;
    }
    if (token >= static_cast<std::uint64_t>(vocabulary_))
      throw bad_input(path_ + ": token " + std::to_string(i) + " is " + std::to_string(token) +
                      ", the model has a vocabulary of " + std::to_string(vocabulary_));
    return static_cast<std::int32_t>(token);
  }

 private:
  static constexpr std::size_t header = 1024;
  static constexpr std::int32_t of_16 = 20240520, of_32 = 20240801;

  std::int32_t number(std::size_t i) const {
    std::int32_t n = 0;
    std::memcpy(&n, file_->bytes().data() + 4 * i, 4);
    return n;
  }

  std::string path_;
  long vocabulary_;
  std::shared_ptr<mapped_file> file_;
  const std::byte* at_ = nullptr;
  std::size_t size_ = 0, width_ = 2;
};

}  // namespace cfp::families
