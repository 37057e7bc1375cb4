// A program that trains and keeps its state after every step, as somebody's own would, in which one fault happens.
#pragma once

#include <string>

namespace faults {

struct task {
  std::string world;      ///< "threads", "mpi", "gpus"
  std::string mesh;       ///< "data=2"
  std::string folder;     ///< its files: state, plan; as `plan` stands beside it
  std::string plan;       ///< to train under; written first where it is not there
  bool keep_all = false;  ///< state.N of every step too
};

inline constexpr long steps = 4;  ///< that a training has

/// Goes on from `folder`/state, if it is there, to the last step. Prints "step N loss L" and how many moments each rank
/// has passed by then; what goes wrong on standard error, and when that was. 0: all well; 1: a rank failed; 2: bad
/// input.
int train(const task& t);

/// Trains with a callback that throws, and with data that end at another step in every process. 0: each is told.
int end_apart(const std::string& world, int ranks);

}  // namespace faults
