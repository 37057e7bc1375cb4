// The blocks of a graph, and what one strategy decides of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

/// What one strategy decides: the body of a block, or one connected piece beside it.
struct part {
  int block = 0;
  enum kind_t : std::uint8_t {
    body,
    entry,  ///< before the anchor: a norm
    tail,   ///< behind the anchors, from a tensor on that something else reads too
  } kind = body;
  std::vector<int> forward;     ///< operations, ascending
  std::vector<int> operations;  ///< with their gradients, sums and updates, ascending
  std::vector<int> anchors;     ///< contractions that decide its dimensions
};

struct block {
  int body = -1;             ///< part
  std::vector<int> entries;  ///< parts
  std::vector<int> tails;    ///< parts
  std::string label;         ///< its first anchor, "h.0.attn.c_attn.linear"
};

struct block_structure {
  std::vector<block> blocks;  ///< in an order in which they can run
  std::vector<part> parts;
  std::vector<int> part_of;  ///< per operation; -1: a sum or update that belongs to a tensor shared by parts
};

}  // namespace cfp
