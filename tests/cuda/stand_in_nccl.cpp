// A stand-in for the functions of NCCL that are called, linked in its place, over the streams of stand_in_cuda.cpp.
// Ranks are threads; or processes, which meet in the folder that CFP_STAND_IN_FOLDER names. Collectives take place when
// it is the turn of all members. The communicators are as non-blocking as NCCL's: a start, a split and an end are only
// begun by the call; their end waits, as NCCL's does, for graphs that call them. What it does not show: that NCCL keeps
// what its documentation promises.
#include "stand_in_file.hpp"
#include "stand_in_streams.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
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
  std::map<std::pair<int, int>, std::shared_ptr<meeting>> pairs;  // of two that send to one another
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
  // Where members are processes, in place of `among`.
  std::unique_ptr<group_file> apart{};
  std::vector<ncclComm_t*> asked{};  // splits, each to be made once all have asked for it
  std::map<int, ncclComm*> pairs{};  // with each that it sends to or receives from, outside of groups

  bool is_done() const {
    return turn >= issued && std::all_of(pairs.begin(), pairs.end(), [](const auto& p) { return p.second->is_done(); });
  }
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

// What member m of a collective gets; `whole` is what an all-reduce gives all of them.
void give(const std::vector<operation*>& all, std::size_t m, const std::vector<char>& whole) {
  const operation& first = *all.front();
  const std::size_t bytes = first.count * bytes_of(first.type);
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

// All members are there.
std::vector<char> combined(const std::vector<operation*>& all) {
  const operation& first = *all.front();
  for (const operation* o : all)
    if (o->what != first.what || o->count != first.count || o->type != first.type || o->by != first.by ||
        o->root != first.root)
      ++seen.misuses;
  std::vector<char> whole(first.count * 8);
  if (first.what == kind::all_reduce) reduce(all, 0, first.count, whole.data());
  return whole;
}

void carry_out(const std::vector<operation*>& all) {
  const std::vector<char> whole = combined(all);
  for (std::size_t m = 0; m < all.size(); ++m) give(all, m, whole);
  for (operation* o : all) {
    o->done = true;
    ++o->comm->turn;
  }
}

// A collective as one process tells others of it: the call, and what it brings.
struct told {
  kind what;
  std::size_t count, sends;
  ncclDataType_t type;
  ncclRedOp_t by;
  int root;
};

std::string bytes_of(const operation& o, std::size_t members) {
  const told head{o.what, o.count, o.sends.size(), o.type, o.by, o.root};
  std::string out;
  const auto add = [&](const void* from, std::size_t bytes) {
    if (bytes > 0) out.append(static_cast<const char*>(from), bytes);
  };
  add(&head, sizeof head);
  for (const part& s : o.sends) add(&s, sizeof s);
  for (const part& s : o.sends) add(s.from, s.bytes);
  const std::size_t times = o.what == kind::exchange ? 0 : o.what == kind::reduce_scatter ? members : 1;
  add(o.in, times * o.count * bytes_of(o.type));
  return out;
}

operation from_bytes(const std::vector<char>& bytes) {
  const char* at = bytes.data();
  told head{};
  std::memcpy(&head, at, sizeof head);
  at += sizeof head;
  operation o;
  o.what = head.what;
  o.count = head.count;
  o.type = head.type;
  o.by = head.by;
  o.root = head.root;
  o.sends.resize(head.sends);
  if (head.sends > 0) std::memcpy(o.sends.data(), at, head.sends * sizeof(part));
  at += head.sends * sizeof(part);
  for (part& s : o.sends) s.from = std::exchange(at, at + s.bytes);
  o.in = at;
  return o;
}

// Where members are processes: each takes what it gets from what all have brought.
bool take_turn_apart(operation& o) {
  group_file& file = *o.comm->apart;
  if (!file.bring(o.turn, bytes_of(o, static_cast<std::size_t>(file.size())))) return false;
  const std::vector<std::vector<char>> brought = file.brought(o.turn);
  if (brought.empty()) return false;
  std::vector<operation> members;
  for (const std::vector<char>& b : brought) members.push_back(from_bytes(b));
  std::vector<operation*> all;
  for (operation& m : members) all.push_back(&m);
  const auto me = static_cast<std::size_t>(file.rank());
  members[me].out = o.out;
  members[me].receives = o.receives;
  give(all, me, combined(all));
  file.end(o.turn);
  o.done = true;
  ++o.comm->turn;
  return true;
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

std::uint64_t this_gpu() {
  int number = 0;
  cudaDeviceProp properties{};
  cudaGetDevice(&number);
  cudaGetDeviceProperties(&properties, number);
  return static_cast<std::uint64_t>(properties.uuid.bytes[0]);
}

ncclComm_t make_apart(const std::string& path, int rank, int size, int world_rank) {
  const ncclComm_t made = make(nullptr, rank, world_rank);
  made->apart = std::make_unique<group_file>(path, rank, size, this_gpu(), std::getenv("NCCL_HOSTID") != nullptr);
  return made;
}

// Two members send to one another when it is both their turn, whatever the others do.
ncclComm_t pair_of(ncclComm_t comm, int peer) {
  ncclComm_t& out = comm->pairs[peer];
  if (out != nullptr) return out;
  const int first = std::min(comm->rank, peer), last = std::max(comm->rank, peer), rank = comm->rank == first ? 0 : 1;
  if (comm->apart) {
    out = new ncclComm{nullptr, rank, comm->world_rank};
    const std::string path = comm->apart->path() + "_pair_" + std::to_string(first) + "_" + std::to_string(last);
    out->apart = std::make_unique<group_file>(path, rank, 2, this_gpu(), std::getenv("NCCL_HOSTID") != nullptr);
    return out;
  }
  std::shared_ptr<meeting>& among = comm->among->pairs[{first, last}];
  if (among == nullptr) {
    among = std::make_shared<meeting>();
    among->size = among->started = 2;
    among->present.resize(2);
  }
  return out = new ncclComm{among, rank, comm->world_rank};
}
ncclResult_t cross(const void* from, void* to, std::size_t bytes, int peer, ncclComm_t comm, cudaStream_t stream) {
  operation o;
  o.what = kind::exchange;
  {
    const std::lock_guard lock(mutex);
    if (comm == nullptr || comm->ends || peer == comm->rank) return ncclInvalidArgument;
    o.comm = pair_of(comm, peer);
  }
  const part one{1 - o.comm->rank, from, to, bytes};
  (from != nullptr ? o.sends : o.receives).push_back(one);
  return issue(std::move(o), stream);
}

// The parts of a group of processes that all have asked for by now.
void make_splits(ncclComm_t comm) {
  for (std::size_t n = 0; n < comm->asked.size(); ++n) {
    if (comm->asked[n] == nullptr) continue;
    const std::vector<std::pair<int, int>> all = comm->apart->split(n);
    if (all.empty()) continue;
    const int color = all[static_cast<std::size_t>(comm->rank)].first;
    std::map<int, int> members;  // by key
    for (int m = 0; m < comm->apart->size(); ++m)
      if (all[static_cast<std::size_t>(m)].first == color) members[all[static_cast<std::size_t>(m)].second] = m;
    int rank = 0;
    for (const auto& [key, m] : members)
      if (m != comm->rank) ++rank;
      else break;
    const std::string path = comm->apart->path() + "_" + std::to_string(n) + "_" + std::to_string(color);
    *std::exchange(comm->asked[n], nullptr) =
        make_apart(path, rank, static_cast<int>(members.size()), comm->world_rank);
  }
}

ncclResult_t state_apart(ncclComm_t comm) {
  make_splits(comm);
  if (comm->apart->one_gpu_twice()) return ncclInvalidUsage;
  const bool splits = std::any_of(comm->asked.begin(), comm->asked.end(), [](auto* p) { return p != nullptr; });
  const bool ends = comm->ends && !comm->is_done();
  return !comm->apart->all_started() || splits || ends ? ncclInProgress : ncclSuccess;
}

// NCCL waits until no graph calls it, for ever.
void drop(ncclComm_t comm) {
  for (const auto& [peer, pair] : comm->pairs) {
    drop_collectives(pair);
    if (!pair->apart) pair->among->present[static_cast<std::size_t>(pair->rank)] = nullptr;
    if (pair->graphs == 0) delete pair;
    else ++seen.misuses;
  }
  drop_collectives(comm);
  take_of(comm->world_rank, -gpu_size::communicator);
  if (comm->among && !comm->among->present.empty())
    comm->among->present[static_cast<std::size_t>(comm->rank)] = nullptr;
  if (comm->graphs == 0) delete comm;
  else ++seen.misuses;
}

}  // namespace

namespace stand_in {

bool take_turn(operation& o) {
  if (o.comm->turn != o.turn) return false;  // another stream is first
  if (o.comm->apart) return take_turn_apart(o);
  std::vector<operation*>& present = o.comm->among->present;
  present[static_cast<std::size_t>(o.comm->rank)] = &o;
  if (std::count(present.begin(), present.end(), nullptr) != 0) return false;
  const std::vector<operation*> all = present;
  std::fill(present.begin(), present.end(), nullptr);
  carry_out(all);
  return true;
}

void leave(const operation& o) {
  if (o.comm->apart) return;
  for (operation*& p : o.comm->among->present)
    if (p == &o) p = nullptr;
}

std::uint64_t next_turn(const operation& o) { return o.comm->issued++; }

void call_from_graphs(ncclComm_t comm, int more) { comm->graphs += more; }

}  // namespace stand_in

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError    ? "remote process exited or there was a network error"
         : result == ncclSystemError  ? "unhandled system error"
         : result == ncclInvalidUsage ? "invalid usage (duplicate GPU)"
                                      : "internal error";
}

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  const std::uint64_t number[] = {next_id++, static_cast<std::uint64_t>(getpid())};
  std::memcpy(id->internal, number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0) ++seen.misuses;
  if (fault.start_refused == rank) return ncclSystemError;
  std::uint64_t number[2]{};
  std::memcpy(number, id.internal, sizeof number);
  if (const char* folder = std::getenv("CFP_STAND_IN_FOLDER")) {
    const std::string path = folder + ("/" + std::to_string(number[1]) + "_" + std::to_string(number[0]));
    *comm = make_apart(path, rank, size, rank);
    return ncclInProgress;
  }
  std::shared_ptr<meeting>& among = starts[number[0]];
  if (among == nullptr) among = std::make_shared<meeting>();
  among->size = static_cast<std::size_t>(size);
  among->present.resize(among->size);
  if (fault.start_unending != rank) ++among->started;
  *comm = make(among, rank, rank);
  return ncclInProgress;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (comm->apart) {
    if (config->blocking != 0 || !comm->apart->all_started()) ++seen.misuses;
    comm->apart->ask_split(comm->asked.size(), color, key);
    comm->asked.push_back(made);
    return ncclInProgress;
  }
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
  if (comm->apart) {
    *error = state_apart(comm);
    return ncclSuccess;
  }
  const meeting& all = *comm->among;
  const int rank = comm->world_rank;
  *error = ncclSuccess;
  if (fault.broken == rank) *error = ncclRemoteError;
  else if (all.started < all.size) *error = ncclInProgress;
  else if (comm->splits > 0 && fault.split_broken == rank) *error = ncclInternalError;
  else if (comm->splits > 0 && all.splits[comm->splits - 1].come < all.size) *error = ncclInProgress;
  else if (fault.issue_unending == rank && comm->issued > 0) *error = ncclInProgress;
  else if (comm->ends && (fault.end_unending == rank || !comm->is_done())) *error = ncclInProgress;
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
  if (!comm->ends || !comm->is_done()) ++seen.misuses;
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
  if (grouped == 0) return cross(from, nullptr, count * bytes_of(type), peer, comm, stream);
  group[{comm, stream}].sends.push_back({peer, from, nullptr, count * bytes_of(type)});
  return ncclSuccess;
}
ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (grouped == 0) return cross(nullptr, to, count * bytes_of(type), peer, comm, stream);
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
