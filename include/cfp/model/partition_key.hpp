// A partition as part of a key: equal texts are equal partitions.
#pragma once

#include <cfp/core/partition.hpp>

#include <string>

namespace cfp::inline v0_1::detail {

inline void put(std::string& key, const partition& p) {
  const unsigned number = number_of(p);
  key += static_cast<char>(p.rank());
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace cfp::detail
