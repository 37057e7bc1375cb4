// A stand-in for the functions of NCCL that are called, linked in its place, over the streams of stand_in_cuda.cpp.
// Ranks are threads. Collectives take place when it is the turn of all members. The communicators are as non-blocking
// as NCCL's: a start, a split and an end are only begun by the call; their end waits, as NCCL's does, for graphs that
// call them. What it does not show: that NCCL keeps what its documentation promises.
#include "stand_in_streams.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

using namespace stand_in;

namespace {

// A group of ranks.
struct meeting {
  std::size_t size = 0, started = 0;
  std::vector<operation*> present;
  struct split {
    std::size_t come = 0;
    std::vector<std::pair<int, int>> asked;  // color, key
    std::vector<ncclComm_t*> made;
  };
  std::deque<split> splits;
};

std::map<std::uint64_t, std::shared_ptr<meeting>> starts;
std::uint64_t next_id = 1;
thread_local int grouped = 0;
thread_local std::map<std::pair<ncclComm_t, cudaStream_t>, operation> group;

}  // namespace

struct ncclComm {
  std::shared_ptr<meeting> among;
  int rank = 0, world_rank = 0;
  std::uint64_t issued = 0, turn = 0;
  std::size_t splits = 0;
  bool ends = false;
  int graphs = 0;  // that call it
};

namespace {

template <class T, class Wide, Wide (*widen)(T), T (*narrow)(Wide)>
void reduce(const std::vector<operation*>& all, std::size_t from, std::size_t count, void* out) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    Wide x{};
    for (std::size_t m = 0; m < all.size(); ++m) {
      const Wide y = widen(static_cast<const T*>(all[m]->in)[from + i]);
      if (m == 0) x = y;
      else if (all[m]->by == ncclSum) x = static_cast<Wide>(x + y);
      else if (all[m]->by == ncclMax) x = std::max(x, y);
      else x = std::min(x, y);
    }
    result[i] = narrow(x);
  }
  if (count > 0) std::memcpy(out, result.data(), count * sizeof(T));
}

template <class T>
T same(T x) {
  return x;
}
float from_half(__half x) { return __half2float(x); }
__half to_half(float x) { return __float2half(x); }
float from_bf16(__nv_bfloat16 x) { return __bfloat162float(x); }
__nv_bfloat16 to_bf16(float x) { return __float2bfloat16(x); }

std::size_t bytes_of(ncclDataType_t type) {
  if (type == ncclInt8 || type == ncclUint8) return 1;
  if (type == ncclFloat16 || type == ncclBfloat16) return 2;
  return type == ncclInt32 || type == ncclUint32 || type == ncclFloat32 ? 4 : 8;
}

void reduce(const std::vector<operation*>& all, std::size_t from, std::size_t count, void* out) {
  switch (all.front()->type) {
    case ncclInt8: return reduce<std::int8_t, std::int8_t, same, same>(all, from, count, out);
    case ncclUint8: return reduce<std::uint8_t, std::uint8_t, same, same>(all, from, count, out);
    case ncclInt32: return reduce<std::int32_t, std::int32_t, same, same>(all, from, count, out);
    case ncclUint32: return reduce<std::uint32_t, std::uint32_t, same, same>(all, from, count, out);
    case ncclInt64: return reduce<std::int64_t, std::int64_t, same, same>(all, from, count, out);
    case ncclUint64: return reduce<std::uint64_t, std::uint64_t, same, same>(all, from, count, out);
    case ncclFloat16: return reduce<__half, float, from_half, to_half>(all, from, count, out);
    case ncclFloat32: return reduce<float, float, same, same>(all, from, count, out);
    case ncclFloat64: return reduce<double, double, same, same>(all, from, count, out);
    case ncclBfloat16: return reduce<__nv_bfloat16, float, from_bf16, to_bf16>(all, from, count, out);
    default: ++seen.misuses;
  }
}

// All members are there.
void carry_out(const std::vector<operation*>& all) {
  const operation& first = *all.front();
  for (const operation* o : all)
    if (o->what != first.what || o->count != first.count || o->type != first.type || o->by != first.by ||
        o->root != first.root)
      ++seen.misuses;
  const std::size_t bytes = first.count * bytes_of(first.type);
  std::vector<char> whole(first.count * 8);
  if (first.what == kind::all_reduce) reduce(all, 0, first.count, whole.data());
  for (std::size_t m = 0; m < all.size(); ++m) {
    char* const out = static_cast<char*>(all[m]->out);
    switch (first.what) {
      case kind::note:
      case kind::meet:
      case kind::work: break;
      case kind::all_reduce:
        if (bytes > 0) std::memcpy(out, whole.data(), bytes);
        break;
      case kind::all_gather:
        for (std::size_t i = 0; i < all.size(); ++i)
          if (bytes > 0) std::memmove(out + i * bytes, all[i]->in, bytes);
        break;
      case kind::reduce_scatter: reduce(all, m * first.count, first.count, out); break;
      case kind::broadcast:
        if (bytes > 0) std::memmove(out, all[static_cast<std::size_t>(first.root)]->in, bytes);
        break;
      case kind::exchange:
        for (const part& r : all[m]->receives)
          for (const part& s : all[static_cast<std::size_t>(r.peer)]->sends) {
            if (s.peer != static_cast<int>(m)) continue;
            if (s.bytes != r.bytes) ++seen.misuses;
            else if (s.bytes > 0) std::memcpy(r.to, s.from, s.bytes);
          }
    }
  }
  for (operation* o : all) {
    o->done = true;
    ++o->comm->turn;
  }
}

ncclResult_t issue(operation o, cudaStream_t on) {
  const std::lock_guard lock(mutex);
  if (o.comm == nullptr || o.comm->ends) return ncclInvalidArgument;
  CUstream_st& stream = find(on);
  if (!stream.captured) o.turn = next_turn(o);
  if (fault.issue_unending != o.comm->world_rank) put(stream, std::move(o));
  return ncclInProgress;
}

ncclResult_t issue(kind what, const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by,
                   int root, ncclComm_t comm, cudaStream_t stream) {
  operation o;
  o.what = what;
  o.comm = comm;
  o.in = in;
  o.out = out;
  o.count = count;
  o.type = type;
  o.by = by;
  o.root = root;
  return issue(std::move(o), stream);
}

ncclComm_t make(std::shared_ptr<meeting> among, int rank, int world_rank) {
  ++seen.made;
  take_of(world_rank, gpu_size::communicator);
  return new ncclComm{std::move(among), rank, world_rank};
}

// NCCL waits until no graph calls it, for ever.
void drop(ncclComm_t comm) {
  drop_collectives(comm);
  take_of(comm->world_rank, -gpu_size::communicator);
  if (!comm->among->present.empty()) comm->among->present[static_cast<std::size_t>(comm->rank)] = nullptr;
  if (comm->graphs == 0) delete comm;
  else ++seen.misuses;
}

}  // namespace

namespace stand_in {

bool take_turn(operation& o) {
  if (o.comm->turn != o.turn) return false;  // another stream is first
  std::vector<operation*>& present = o.comm->among->present;
  present[static_cast<std::size_t>(o.comm->rank)] = &o;
  if (std::count(present.begin(), present.end(), nullptr) != 0) return false;
  const std::vector<operation*> all = present;
  std::fill(present.begin(), present.end(), nullptr);
  carry_out(all);
  return true;
}

void leave(const operation& o) {
  for (operation*& p : o.comm->among->present)
    if (p == &o) p = nullptr;
}

std::uint64_t next_turn(const operation& o) { return o.comm->issued++; }

void call_from_graphs(ncclComm_t comm, int more) { comm->graphs += more; }

}  // namespace stand_in

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError   ? "remote process exited or there was a network error"
         : result == ncclSystemError ? "unhandled system error"
                                     : "internal error";
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  std::memcpy(id->internal, &next_id, sizeof next_id);
  ++next_id;
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0) ++seen.misuses;
  if (fault.start_refused == rank) return ncclSystemError;
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  std::shared_ptr<meeting>& among = starts[number];
  if (among == nullptr) among = std::make_shared<meeting>();
  among->size = static_cast<std::size_t>(size);
  among->present.resize(among->size);
  if (fault.start_unending != rank) ++among->started;
  *comm = make(among, rank, rank);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0 || comm->among->started < comm->among->size) ++seen.misuses;
  meeting& all = *comm->among;
  if (all.splits.size() <= comm->splits)
    all.splits.push_back({0, std::vector<std::pair<int, int>>(all.size), std::vector<ncclComm_t*>(all.size)});
  meeting::split& s = all.splits[comm->splits++];
  s.asked[static_cast<std::size_t>(comm->rank)] = {color, key};
  s.made[static_cast<std::size_t>(comm->rank)] = made;
  if (fault.split_broken == comm->world_rank || ++s.come < all.size) return ncclInProgress;
  std::map<int, std::map<int, std::size_t>> parts;
  for (std::size_t m = 0; m < all.size; ++m) parts[s.asked[m].first][s.asked[m].second] = m;
  for (const auto& [of, members] : parts) {
    const auto among = std::make_shared<meeting>();
    among->size = among->started = members.size();
    among->present.resize(among->size);
    int rank = 0;
    for (const auto& [by, m] : members) *s.made[m] = make(among, rank++, static_cast<int>(m));
  }
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (comm == nullptr) return ncclInvalidArgument;
  const std::lock_guard lock(mutex);
  const meeting& all = *comm->among;
  const int rank = comm->world_rank;
  *error = ncclSuccess;
  if (fault.broken == rank) *error = ncclRemoteError;
  else if (all.started < all.size) *error = ncclInProgress;
  else if (comm->splits > 0 && fault.split_broken == rank) *error = ncclInternalError;
  else if (comm->splits > 0 && all.splits[comm->splits - 1].come < all.size) *error = ncclInProgress;
  else if (fault.issue_unending == rank && comm->issued > 0) *error = ncclInProgress;
  else if (comm->ends && (fault.end_unending == rank || comm->turn < comm->issued)) *error = ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  advance_all();
  comm->ends = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  if (!comm->ends || comm->turn < comm->issued) ++seen.misuses;
  ++seen.destroyed;
  drop(comm);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  ++seen.aborted;
  drop(comm);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue(kind::all_reduce, in, out, count, type, by, 0, comm, stream);
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return issue(kind::all_gather, in, out, count, type, ncclSum, 0, comm, stream);
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t by,
                               ncclComm_t comm, cudaStream_t stream) {
  return issue(kind::reduce_scatter, in, out, count, type, by, 0, comm, stream);
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return issue(kind::broadcast, in, out, count, type, ncclSum, root, comm, stream);
}

ncclResult_t ncclGroupStart() {
  ++grouped;
  return ncclSuccess;
}
ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (grouped == 0) ++seen.misuses;  // would wait for the peer
  group[{comm, stream}].sends.push_back({peer, from, nullptr, count * bytes_of(type)});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (grouped == 0) ++seen.misuses;
  group[{comm, stream}].receives.push_back({peer, nullptr, to, count * bytes_of(type)});
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (--grouped > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (auto& [on, o] : group) {
    o.what = kind::exchange;
    o.comm = on.first;
    result = issue(std::move(o), on.second);
  }
  group.clear();
  return result;
}

}  // extern "C"
