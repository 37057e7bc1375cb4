// What tells that numbers in a file are those that were written.
#pragma once

#include <boost/crc.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

namespace cfp::inline v0_1::detail {

/// CRC-32 (ISO-HDLC: that of zlib, gzip and PNG), as eight hexadecimal digits.
inline std::string checksum(const void* bytes, std::size_t count) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes, count);
  char out[9];
  std::snprintf(out, sizeof out, "%08x", static_cast<unsigned>(crc.checksum()));
  return out;
}

}  // namespace cfp
