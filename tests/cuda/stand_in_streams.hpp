// What the two halves of the stand-in share: streams, what is on its way in them, and what captures of them hold.
#pragma once

#include "stand_in.hpp"

#include <cuda_runtime.h>
#include <nccl.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace stand_in {

enum class kind { note, meet, work, all_reduce, all_gather, reduce_scatter, broadcast, exchange };

struct capture;

/// A place in a stream that an event was recorded at.
struct moment {
  bool done = false;
  bool met = false;             // by another stream
  const capture* in = nullptr;  // a capture it belongs to
  std::chrono::steady_clock::time_point at{};
};

struct part {  // of an exchange
  int peer;
  const void* from;
  void* to;
  std::size_t bytes;
};

struct operation {
  kind what = kind::work;
  std::shared_ptr<moment> when{};  // noted, or met
  std::function<void()> run{};     // work
  ncclComm_t comm = nullptr;       // of a collective; the rest is its
  std::uint64_t turn = 0;          // of the communicator; in a graph, among what it holds
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclInt8;
  ncclRedOp_t by = ncclSum;
  int root = 0;
  std::vector<part> sends{}, receives{};
  bool done = false;
};

/// Streams that have joined, that of the beginning first, and what each was given.
struct capture {
  std::vector<std::pair<cudaStream_t, std::deque<operation>>> branches;
  std::uint64_t sequence = 0;
};

// Everything below is for who holds the mutex.
extern std::mutex mutex;
CUstream_st& find(cudaStream_t);
/// To the end of a stream, or into what captures it.
void put(CUstream_st&, operation);
/// Does what can be done on all streams, in an order by chance.
void advance_all();
/// What is still issued to a communicator ends without taking place.
void drop_collectives(ncclComm_t);
/// Whether a collective's turn has come, and takes place: then it is done.
bool take_turn(operation&);
/// A collective that never takes place: nobody meets it.
void leave(const operation&);
/// The next turn of its communicator.
std::uint64_t next_turn(const operation&);
/// So many bytes more, or less, of a GPU are taken.
void take_of(int device, long bytes);
/// So many graphs more, or less, call the communicator.
void call_from_graphs(ncclComm_t, int more);

}  // namespace stand_in

struct CUstream_st {
  std::deque<stand_in::operation> operations{};
  std::shared_ptr<stand_in::capture> captured{};
  int device = 0;
  bool left = false;  // by who made it: it ends when it is empty
};
