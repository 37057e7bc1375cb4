// The connection of a process to the other ranks of its job: made on first use, kept until the process ends.
#pragma once

#include <cfp/communicator/launched/launched_link.hpp>
#include <cfp/communicator/launched/launched_rank.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

namespace cfp::inline v0_1::detail {

class launched_jobs {
 public:
  static launched_jobs& of_this_process() {
    static launched_jobs all;
    return all;
  }
  launched_jobs() = default;
  launched_jobs(const launched_jobs&) = delete;
  ~launched_jobs() { end(); }

  /// Throws as `launched_link` does, and may then be tried again.
  std::shared_ptr<launched_link> join(const launched_rank& me, std::chrono::nanoseconds deadline) {
    std::shared_ptr<entry> mine;
    {
      const std::lock_guard lock(mutex_);
      std::shared_ptr<entry>& e = entries_[{me.address, me.port, me.job, me.size, me.rank}];
      if (!e) e = std::make_shared<entry>();
      mine = e;
    }
    const std::lock_guard lock(mine->mutex);
    if (!mine->link) mine->link = std::make_shared<launched_link>(me, deadline);
    return mine->link;
  }

  /// Tells all others that this process ends, so that nobody waits for it.
  void end() {
    const std::lock_guard lock(mutex_);
    for (auto& [key, e] : entries_)
      if (e->link) e->link->say_goodbye();
    entries_.clear();
  }

 private:
  struct entry {
    std::mutex mutex;
    std::shared_ptr<launched_link> link;
  };

  std::mutex mutex_;
  std::map<std::tuple<std::string, int, std::string, int, int>, std::shared_ptr<entry>> entries_;
};

}  // namespace cfp::detail
