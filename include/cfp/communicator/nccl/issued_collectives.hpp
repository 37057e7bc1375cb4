// The collectives that one rank has issued to its GPU and that may not have ended.
#pragma once

#include <cfp/communicator/collective_call.hpp>
#include <cfp/communicator/nccl/cuda_error.hpp>
#include <cfp/communicator/nccl/nccl_group.hpp>

#include <deque>
#include <string>
#include <vector>

namespace cfp::inline v0_1::detail {

/// A collective on its way.
struct issued_collective {
  const nccl_group* group = nullptr;
  collective_call call;
  cudaStream_t stream = nullptr;
  cudaEvent_t done = nullptr;

  std::string text() const { return call.text() + group->where; }
};

/// Each with an event that follows it on its stream.
class issued_collectives {
 public:
  issued_collectives() = default;
  issued_collectives(const issued_collectives&) = delete;

  void release() {
    for (const issued_collective& c : issued_) cudaEventDestroy(c.done);
    for (const cudaEvent_t e : events_) cudaEventDestroy(e);
  }

  void remember(issued_collective c) {
    while (!issued_.empty() && cuda_done(cudaEventQuery(issued_.front().done))) {
      events_.push_back(issued_.front().done);
      issued_.pop_front();
    }
    if (events_.empty())
      cuda_check(cudaEventCreateWithFlags(&events_.emplace_back(), cudaEventDisableTiming), "cudaEventCreateWithFlags");
    c.done = events_.back();
    cuda_check(cudaEventRecord(c.done, c.stream), "cudaEventRecord");
    events_.pop_back();
    issued_.push_back(c);
  }

  /// The stream has done all that was issued to it.
  void ended(cudaStream_t stream) {
    for (const issued_collective& c : issued_)
      if (c.stream == stream) events_.push_back(c.done);
    std::erase_if(issued_, [&](const issued_collective& c) { return c.stream == stream; });
  }

  // The first collective on a stream that has not ended, else on another: the stream may wait for that.
  std::string oldest(cudaStream_t stream) const {
    const issued_collective* elsewhere = nullptr;
    for (const issued_collective& c : issued_) {
      if (cuda_done(cudaEventQuery(c.done))) continue;
      if (c.stream == stream) return c.text();
      if (elsewhere == nullptr) elsewhere = &c;
    }
    return elsewhere != nullptr ? elsewhere->text() : "work on a stream (a kernel or a graph)";
  }

  bool empty() const { return issued_.empty(); }
  const issued_collective& last() const { return issued_.back(); }

 private:
  std::deque<issued_collective> issued_;
  std::vector<cudaEvent_t> events_;  // to be used again
};

}  // namespace cfp::detail
