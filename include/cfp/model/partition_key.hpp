// A partition as part of a key: equal texts are equal partitions.
#pragma once

#include <cfp/core/partition.hpp>

#include <string>

namespace cfp::inline v0_1::detail {

inline void put(std::string& key, const partition& p) {
  for (const auto& axes : p.dims) {
    for (const signed char a : axes) key += static_cast<char>('0' + a);
    key += ',';
  }
  for (const partition::debt& d : p.partial) key += d.owed ? static_cast<char>('A' + static_cast<int>(d.combine)) : '-';
  key += ';';
}

}  // namespace cfp::detail
