#include "moment.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <thread>

namespace faults {

namespace {

std::atomic<bool> full{false}, brief{false};

// The process stops, as one does that the system has no time or memory for; another wakes it.
void stop_process(double seconds) {
  const pid_t sleeper = getpid(), waker = fork();
  if (waker == 0) {  // nothing but system calls: the process had threads
    syscall(SYS_close_range, 0u, ~0u, 0u);
    timespec left{static_cast<time_t>(seconds), static_cast<long>((seconds - static_cast<long>(seconds)) * 1e9)};
    nanosleep(&left, nullptr);
    kill(sleeper, SIGCONT);
    _exit(0);
  }
  raise(SIGSTOP);
}

void happen() {
  std::fprintf(stderr, "fault at %.3f: %s\n", now(), planned.text().c_str());
  std::fflush(stderr);
  switch (planned.what) {
    case what::none: break;
    case what::raise: throw std::runtime_error("told to fail");
    case what::kill: kill(getpid(), SIGKILL); break;
    case what::stop:
      if (!planned.is_thread) stop_process(asleep_for * planned.deadline);
      else std::this_thread::sleep_for(std::chrono::duration<double>(asleep_for * planned.deadline));
      break;
    case what::full: full = true; break;
    case what::brief: brief = true; break;
  }
}

bool in_folder(int file) {
  if (planned.folder.empty()) return false;
  char path[4096];
  const ssize_t n = readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path);
  return n > 0 && std::string_view(path, static_cast<std::size_t>(n)).starts_with(planned.folder);
}

// Whether a write into a file has the disk full.
bool refused(int file) {
  if (!in_folder(file)) return false;
  pass(0, kind::write);
  return full;
}

}  // namespace

double now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

void pass(int rank, kind of) {
  const long n = passed[static_cast<std::size_t>(rank)][static_cast<std::size_t>(of)]++;
  if (planned.what != what::none && planned.kind == of && planned.rank == rank && planned.at == n) happen();
}

}  // namespace faults

// In the place of the C library's: what the libraries below this program call to write files.
extern "C" {

ssize_t write(int file, const void* from, size_t n) {
  if (faults::refused(file)) return errno = ENOSPC, -1;
  if (n > 1 && faults::in_folder(file) && faults::brief.exchange(false)) n /= 2;
  return syscall(SYS_write, file, from, n);
}

ssize_t writev(int file, const iovec* from, int n) {
  if (faults::refused(file)) return errno = ENOSPC, -1;
  if (n > 0 && from[0].iov_len > 1 && faults::in_folder(file) && faults::brief.exchange(false))
    return syscall(SYS_write, file, from[0].iov_base, from[0].iov_len / 2);
  return syscall(SYS_writev, file, from, n);
}

int posix_fallocate(int file, off_t from, off_t n) {
  if (faults::refused(file)) return ENOSPC;
  return syscall(SYS_fallocate, file, 0, from, n) == 0 ? 0 : errno;
}

int fsync(int file) {
  if (faults::refused(file)) return errno = EIO, -1;
  return static_cast<int>(syscall(SYS_fsync, file));
}

int rename(const char* from, const char* to) {
  if (!faults::planned.folder.empty() && std::string_view(to).starts_with(faults::planned.folder)) {
    faults::pass(0, faults::kind::write);
    if (faults::full) return errno = ENOSPC, -1;
  }
  return static_cast<int>(syscall(SYS_rename, from, to));
}
}
