// Files of the safetensors format: eight bytes with the size of a header, a header of JSON that says where each tensor
// lies, tensors side by side (https://huggingface.co/docs/safetensors).
#pragma once

#include <cfp/file/json_reader.hpp>
#include <cfp/file/mapped_file.hpp>
#include <cfp/file/new_file.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace cfp::inline v0_1::detail {

/// Of such a file: what its header says, and what is behind it.
struct safetensors_map {
  mapped_file file;
  std::string_view header;
  std::span<std::byte> tensors;

  /// Throws `Error`: a sentence that begins with `said`.
  template <class Error>
  static safetensors_map of(const std::string& path, const std::string& said, bool written = false) {
    safetensors_map out{mapped_file::of<Error>(path, said, written), {}, {}};
    const std::span<std::byte> all = out.file.bytes();
    std::uint64_t size = 0;
    for (std::size_t b = 0; b < 8 && all.size() >= 8; ++b) size |= std::to_integer<std::uint64_t>(all[b]) << (8 * b);
    if (all.size() < 8 || size > all.size() - 8)
      throw Error(said + ": is no safetensors file: its header does not fit");
    out.header = {reinterpret_cast<const char*>(all.data() + 8), size};
    out.tensors = all.subspan(8 + size);
    return out;
  }
};

/// What a header says of a tensor.
struct safetensors_entry {
  std::string type;             ///< "F32"
  const nlohmann::json* shape;  ///< in the header: it may be as deep as a hostile file likes, and no copy is made of it
  std::uint64_t from = 0, to = 0;  ///< bytes behind the header
};

template <class Error>
class safetensors_reader : protected json_reader<Error> {
 public:
  using json_reader<Error>::json_reader;

 protected:
  using json = nlohmann::json;

  safetensors_entry entry(const json& value, const std::string& owner) const {
    this->object(value, owner);
    const json& bytes = this->array(this->member(value, owner, "data_offsets"), owner + ".data_offsets");
    if (bytes.size() != 2 || !bytes[0].is_number_unsigned() || !bytes[1].is_number_unsigned())
      this->refuse(owner + ".data_offsets must be the bytes it begins and ends at");
    const json& shape = this->array(this->member(value, owner, "shape"), owner + ".shape");
    return {this->text(this->member(value, owner, "dtype"), owner + ".dtype"), &shape, bytes[0].get<std::uint64_t>(),
            bytes[1].get<std::uint64_t>()};
  }
};

/// The text of a header: tensors behind it stand at multiples of 8.
inline std::string safetensors_header(const nlohmann::ordered_json& header) {
  std::string out = header.dump();
  out.resize((out.size() + 7) / 8 * 8, ' ');
  return out;
}

/// All of a file on the disk now: writing to memory that stands for a file ends a program where the disk is full.
inline int take_room(const std::string& file, std::uint64_t bytes) {
  const int f = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (f < 0) return errno;
  const int failed = ::posix_fallocate(f, 0, static_cast<off_t>(bytes));
  ::close(f);
  return failed;
}

/// Writes a header beside the place of a new file and makes room for `bytes` of tensors behind it.
template <class Error>
void begin_safetensors(const new_file& to, const std::string& path, const std::string& header, std::uint64_t bytes) {
  {
    errno = 0;
    std::ofstream file(to.beside(), std::ios::binary);
    const std::uint64_t size = header.size();
    for (int b = 0; b < 8; ++b) file.put(static_cast<char>(size >> (8 * b) & 0xff));
    file << header;
    if (!file.flush())
      throw Error(path + ": cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
  }
  const std::uint64_t all = 8 + header.size() + bytes;
  if (const int failed = take_room(to.beside(), all); failed != 0)
    throw Error(path + ": cannot be made " + std::to_string(all) + " bytes long: " + std::strerror(failed));
}

}  // namespace cfp
