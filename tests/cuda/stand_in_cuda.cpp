// A stand-in for the functions of the CUDA runtime that are called, linked in its place, for machines without a GPU.
// Memory is the host's. Streams are real in what they compute and in when they may: nothing happens when it is issued;
// who asks for the state of any stream drives them all, each as far as it can, in an order by chance; what an event or
// a collective holds back, waits. Captures hold streams that join by events. Waits without a deadline for what cannot
// come are counted as misuses, as are calls that a capture does not allow. What it does not show: that CUDA keeps
// what its documentation promises, anything of timing, and anything that GPUs do by themselves.
#include "stand_in_streams.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string_view>
#include <thread>

using namespace stand_in;

struct CUevent_st {
  std::shared_ptr<moment> last;
};
struct CUgraph_st {
  std::vector<std::deque<operation>> branches;

  explicit CUgraph_st(std::vector<std::deque<operation>> b) : branches(std::move(b)) { call(1); }
  CUgraph_st(const CUgraph_st&) = delete;
  ~CUgraph_st() { call(-1); }

 private:
  void call(int more) const {
    for (const auto& b : branches)
      for (const operation& o : b)
        if (o.comm != nullptr) call_from_graphs(o.comm, more);
  }
};
struct CUgraphExec_st : CUgraph_st {
  using CUgraph_st::CUgraph_st;
};

std::mutex stand_in::mutex;

namespace {

std::set<cudaStream_t> streams;
std::map<int, CUstream_st> default_streams;
std::mt19937 by_chance;
thread_local int device = 0;
thread_local int captures = 0;

using lock = std::lock_guard<std::mutex>;

// What would disturb a capture of this thread.
void no_capture() {
  if (captures > 0) ++seen.misuses;
}

// Whether the first of a stream is done.
bool advance(CUstream_st& stream) {
  operation& o = stream.operations.front();
  switch (o.what) {
    case kind::note:
      o.when->done = true;
      o.when->at = std::chrono::steady_clock::now();
      break;
    case kind::meet:
      if (!o.when->done) return false;
      break;
    case kind::work: o.run(); break;
    default:
      if (!o.done && !take_turn(o)) return false;
  }
  stream.operations.pop_front();
  return true;
}

CUstream_st* make(int of_device, bool left = false) {
  auto* const made = new CUstream_st;
  made->device = of_device;
  made->left = left;
  streams.insert(made);
  return made;
}

// A GPU whose work has failed does no more. Whether this thread's has.
bool is_broken() {
  if (fault.stream_broken != device) return false;
  for (const cudaStream_t s : streams) {
    if (s->device != device) continue;
    for (const operation& o : s->operations)
      if (o.comm != nullptr && !o.done) leave(o);
    s->operations.clear();
  }
  return true;
}

bool empty_here() {
  return std::all_of(streams.begin(), streams.end(),
                     [](cudaStream_t s) { return s->device != device || s->operations.empty(); });
}

// Page-locked memory: where it begins, its bytes, and how much on its way reads it or writes it.
struct pinned {
  std::size_t bytes = 0;
  int read = 0, written = 0;
};
std::map<const char*, pinned> all_pinned;
std::map<void*, std::pair<int, long>> blocks;  // of memory of GPUs: of which, bytes
std::map<int, long> taken;                     // of each GPU

pinned* pinned_at(const void* at) {
  const auto* const p = static_cast<const char*>(at);
  auto next = all_pinned.upper_bound(p);
  if (next == all_pinned.begin() || p >= (--next)->first + next->second.bytes) return nullptr;
  return &next->second;
}
std::size_t contents(const void* at, std::size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char*>(at), bytes});
}

// A wait without a deadline.
template <class Done>
cudaError_t wait_for(const Done& done) {
  no_capture();
  ++seen.asked;
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    {
      const lock l(mutex);
      if (is_broken()) return cudaErrorIllegalAddress;
      advance_all();
      if (done()) return cudaSuccess;
    }
    if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) break;
    std::this_thread::yield();
  }
  ++seen.misuses;
  return cudaErrorUnknown;
}

cudaError_t put_work(cudaStream_t stream, std::function<void()> run) {
  const lock l(mutex);
  operation o;
  o.run = std::move(run);
  put(find(stream), std::move(o));
  return cudaSuccess;
}

// A copy from or to page-locked memory, which until then must be neither freed nor, where it is read, written by the
// host. What is to come there is no number before it comes, unless it is read before. In a graph all is as the streams
// have it: GPUs keep there what is theirs.
struct pinned_copy {
  void* to;
  const void* from;
  std::size_t bytes, given = 0;
  std::shared_ptr<void> used;

  pinned_copy(void* t, const void* f, std::size_t n, bool in_graph) : to(t), from(f), bytes(n) {
    pinned* const source = pinned_at(f);
    pinned* const place = source != nullptr ? source : pinned_at(t);
    int& uses = source != nullptr ? place->read : place->written;
    if (source == nullptr && !in_graph && place->read == 0) std::memset(t, 0xff, n);
    if (source != nullptr && !in_graph && place->written == 0) given = contents(f, n);
    ++uses;
    used = {nullptr, [&uses](void*) { --uses; }};
  }
  void operator()() const {
    if (given != 0 && contents(from, bytes) != given) ++seen.misuses;
    std::memcpy(to, from, bytes);
  }
};

// A copy of what a graph holds: its moments are of this launch alone.
std::vector<std::deque<operation>> once_more(const CUgraph_st& g) {
  std::vector<std::deque<operation>> out = g.branches;
  std::map<const moment*, std::shared_ptr<moment>> fresh;
  std::vector<operation*> collectives;
  for (auto& b : out)
    for (operation& o : b) {
      if (o.when) {
        auto& f = fresh[o.when.get()];
        if (!f) f = std::make_shared<moment>();
        o.when = f;
      }
      if (o.comm != nullptr) collectives.push_back(&o);
    }
  std::sort(collectives.begin(), collectives.end(), [](auto* a, auto* b) { return a->turn < b->turn; });
  for (operation* o : collectives) o->turn = next_turn(*o);
  return out;
}

}  // namespace

namespace stand_in {

CUstream_st& find(cudaStream_t stream) {
  if (stream != nullptr) return *stream;
  CUstream_st& s = default_streams[device];
  s.device = device;
  streams.insert(&s);
  return s;
}

void put(CUstream_st& stream, operation o) {
  if (!stream.captured) {
    stream.operations.push_back(std::move(o));
    return;
  }
  capture& c = *stream.captured;
  if (o.comm != nullptr) o.turn = c.sequence++;
  for (auto& [of, held] : c.branches)
    if (of == &stream) held.push_back(std::move(o));
}

void advance_all() {
  for (bool more = true; more;) {
    more = false;
    std::vector<cudaStream_t> all(streams.begin(), streams.end());
    std::shuffle(all.begin(), all.end(), by_chance);
    for (const cudaStream_t s : all) {
      for (int n = static_cast<int>(by_chance() % 4); n >= 0 && !s->operations.empty() && advance(*s); --n) more = true;
      if (!s->left || !s->operations.empty()) continue;
      streams.erase(s);
      delete s;
    }
  }
}

void drop_collectives(ncclComm_t comm) {
  for (const cudaStream_t s : streams)
    for (operation& o : s->operations) o.done = o.done || (o.comm != nullptr && o.comm == comm);
}

void take_of(int of_device, long bytes) { taken[of_device] += bytes; }

void later(cudaStream_t stream, std::function<void()> work) {
  ++seen.launches;
  put_work(stream, std::move(work));
}

}  // namespace stand_in

extern "C" {

const char* cudaGetErrorName(cudaError_t code) {
  return code == cudaErrorNoDevice         ? "cudaErrorNoDevice"
         : code == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                           : "cudaError";
}
const char* cudaGetErrorString(cudaError_t) { return "as the stand-in says"; }
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = only_gpu == none ? fault.gpus : 1;
  return fault.has_no_gpu == none ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaSetDevice(int number) {
  device = only_gpu == none ? number : only_gpu;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  *properties = {};
  std::strcpy(properties->name, "stand-in");
  properties->totalGlobalMem = std::size_t{1} << 30;
  properties->uuid.bytes[0] = static_cast<char>(1 + (only_gpu == none ? number : only_gpu));
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = device;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 1 << 10;  // a small cache
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  no_capture();
  const lock l(mutex);
  *total = static_cast<std::size_t>(size_of_gpu.total);
  *free = static_cast<std::size_t>(std::max(0l, size_of_gpu.total - gpu_size::context - taken[device]));
  return cudaSuccess;
}
// Begins as what is no number of any type.
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  no_capture();
  const lock l(mutex);
  const auto size = static_cast<long>(bytes);
  if (size > size_of_gpu.total - gpu_size::context - taken[device]) return cudaErrorMemoryAllocation;
  if ((*memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256)) == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xff, bytes);
  blocks[*memory] = {device, size};
  take_of(device, size);
  return cudaSuccess;
}
// Waits for the GPU, as CUDA does.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  wait_for(empty_here);
  const lock l(mutex);
  const auto of = blocks.find(memory);
  take_of(of->second.first, -of->second.second);
  blocks.erase(of);
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMallocHost(void** memory, std::size_t bytes) {
  no_capture();
  const lock l(mutex);
  *memory = std::malloc(bytes);
  all_pinned[static_cast<char*>(*memory)].bytes = bytes;
  ++seen.pinned;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* memory) {
  const lock l(mutex);
  const auto at = all_pinned.find(static_cast<char*>(memory));
  if (at == all_pinned.end() || at->second.read + at->second.written > 0) {
    ++seen.misuses;
    return cudaErrorInvalidValue;
  }
  all_pinned.erase(at);
  --seen.pinned;
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  const lock l(mutex);
  *stream = make(device);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const lock l(mutex);
  stream->left = true;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const lock l(mutex);
  ++seen.asked;
  if (find(stream).captured) ++seen.misuses;
  if (is_broken()) return cudaErrorIllegalAddress;
  advance_all();
  return find(stream).operations.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return wait_for([&] { return find(stream).operations.empty(); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const lock l(mutex);
  *status = find(stream).captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t event, unsigned) {
  const lock l(mutex);
  CUstream_st& stream = find(on);
  const std::shared_ptr<moment>& when = event->last;
  if (!when) return cudaSuccess;
  if (when->in != nullptr && !stream.captured) {  // joins the capture
    for (const cudaStream_t s : streams)
      if (s->captured.get() == when->in) stream.captured = s->captured;
    if (stream.captured) stream.captured->branches.push_back({&stream, {}});
    else ++seen.misuses;  // a capture that has ended
  }
  if (stream.captured && when->in != stream.captured.get()) ++seen.misuses;  // an event from outside
  when->met = true;
  operation o;
  o.what = kind::meet;
  o.when = when;
  put(stream, std::move(o));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  ++seen.events;
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const lock l(mutex);
  --seen.events;
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t on) {
  const lock l(mutex);
  CUstream_st& stream = find(on);
  event->last = std::make_shared<moment>();
  event->last->in = stream.captured.get();
  operation o;
  o.what = kind::note;
  o.when = event->last;
  put(stream, std::move(o));
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return wait_for([&] { return !event->last || event->last->done; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  no_capture();
  ++seen.asked;
  const lock l(mutex);
  if (is_broken()) return cudaErrorIllegalAddress;
  advance_all();
  return !event->last || event->last->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  const lock l(mutex);
  if (!from->last || !to->last || !from->last->done || !to->last->done) return cudaErrorNotReady;
  *ms = std::chrono::duration<float, std::milli>(to->last->at - from->last->at).count();
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  no_capture();
  std::memcpy(to, from, bytes);  // streams that do not wait for the first one's work go on beside
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  std::function<void()> by_pinned;
  {
    const lock l(mutex);
    if (pinned_at(from) != nullptr || pinned_at(to) != nullptr)
      by_pinned = pinned_copy(to, from, bytes, find(stream).captured != nullptr);
  }
  if (by_pinned) return put_work(stream, std::move(by_pinned));
  return put_work(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_step, const void* from, std::size_t from_step, std::size_t bytes,
                              std::size_t rows, cudaMemcpyKind, cudaStream_t stream) {
  return put_work(stream, [=] {
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(static_cast<char*>(to) + r * to_step, static_cast<const char*>(from) + r * from_step, bytes);
  });
}
cudaError_t cudaMemsetAsync(void* at, int byte, std::size_t bytes, cudaStream_t stream) {
  return put_work(stream, [=] { std::memset(at, byte, bytes); });
}

// Of this thread only: ranks that are threads of one process take memory while another captures.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  const lock l(mutex);
  if (mode != cudaStreamCaptureModeThreadLocal || stream->captured) ++seen.misuses;
  stream->captured = std::make_shared<capture>();
  stream->captured->branches.push_back({stream, {}});
  ++captures;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const lock l(mutex);
  const std::shared_ptr<capture> c = std::exchange(stream->captured, nullptr);
  --captures;
  std::vector<std::deque<operation>> branches;
  bool joined = true;
  for (auto& [of, held] : c->branches) {
    of->captured = nullptr;
    const bool ends_met = !held.empty() && held.back().what == kind::note && held.back().when->met;
    joined = joined && (of == stream || ends_met);
    for (operation& o : held)
      if (o.when) o.when->in = nullptr, o.when->done = true;  // outside, the event is as if it never were
    branches.push_back(std::move(held));
  }
  *graph = nullptr;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st(std::move(branches));
  ++seen.graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const lock l(mutex);
  *exec = new CUgraphExec_st(graph->branches);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  const lock l(mutex);
  std::vector<std::deque<operation>> branches = once_more(*exec);
  CUstream_st& main = find(stream);
  for (operation& o : branches.front()) main.operations.push_back(std::move(o));
  for (std::size_t b = 1; b < branches.size(); ++b) make(main.device, true)->operations = std::move(branches[b]);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const lock l(mutex);
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const lock l(mutex);
  delete exec;
  return cudaSuccess;
}

}  // extern "C"
