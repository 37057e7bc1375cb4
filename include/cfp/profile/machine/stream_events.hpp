// What the streams of a rank did when, as a simulation of its program saw it.
#pragma once

#include <vector>

namespace cfp::inline v0_1 {

/// Work of one stream, milliseconds since the step began.
struct stream_event {
  int instruction = 0;
  int stream = -1;  ///< -1: that of operators; else the one beside it (`stream_of`)
  int pass = 0;     ///< which run of the instruction in the step
  double begin = 0, end = 0;
};

struct stream_events {
  struct arrival {
    int instruction = 0;
    double ms = 0;
  };
  std::vector<stream_event> work;  ///< of what takes time, each stream's in order
  std::vector<arrival> came;       ///< when the operators' stream came to each instruction, in order
};

}  // namespace cfp
