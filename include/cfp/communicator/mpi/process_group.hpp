// The end of one rank in a group of ranks that are processes: what its members call, on its way.
#pragma once

#include <cfp/communicator/communicator.hpp>

#include <mpi.h>

namespace cfp::inline v0_1 {

namespace detail {

/// Throws what MPI says of a call that failed.
inline void mpi_check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw communicator_error(std::string(call) + ": " + std::string(text, static_cast<std::size_t>(length)));
}

/// One by one: those that are done are then known to be.
inline bool all_done(std::vector<MPI_Request>& requests) {
  bool all = true;
  for (MPI_Request& r : requests) {
    int is = 1;
    if (r != MPI_REQUEST_NULL) mpi_check(MPI_Test(&r, &is, MPI_STATUS_IGNORE), "MPI_Test");
    all = all && is != 0;
  }
  return all;
}

/// A call as it is sent.
struct sent_call {
  std::int64_t kind = 0, count = 0, bits = 0, type = 0, combine = 0, root = 0;

  sent_call() = default;
  explicit sent_call(const collective_call& c)
      : kind(c.kind), count(static_cast<std::int64_t>(c.count)), bits(c.bits), type(c.type),
        combine(static_cast<std::int64_t>(c.combine)), root(c.root) {}
  collective_call call() const {
    return {static_cast<int>(kind),  static_cast<std::size_t>(count), static_cast<std::uint32_t>(bits),
            static_cast<char>(type), static_cast<reduction>(combine), static_cast<int>(root)};
  }
};

/// The end of one rank in a group of processes.
struct process_group {
  MPI_Comm comm = MPI_COMM_NULL;
  std::string where;             // after a call in a message: "" or " on axis 1"
  std::vector<int> ranks;        // of the members, in the world
  std::vector<sent_call> calls;  // of the members; they arrive here, so they outlive a call that is given up
  std::vector<MPI_Request> coming, going;
  sent_call mine;
  std::int64_t made = 0;        // calls of this rank
  std::vector<std::byte> kept;  // of members' data, while they are combined
  traffic counted;
};

}  // namespace detail

}  // namespace cfp
