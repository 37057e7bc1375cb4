// The end of one rank in a group of ranks with a GPU each.
#pragma once

#include <cfp/communicator/traffic.hpp>

#include <nccl.h>

#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// The end of one rank in a group of ranks with a GPU each.
struct nccl_group {
  ncclComm_t comm = nullptr;
  std::string where;       // after a call in a message: "" or " on axis 1"
  std::vector<int> ranks;  // of the members, in the world
  traffic counted;
  bool borrows = false;  // the communicator of all ranks, which are its members, or two of them a pair
};

}  // namespace cfp::detail
