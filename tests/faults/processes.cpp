#include "processes.hpp"

#include "moment.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace faults {

namespace {

std::string file_of(const std::string& folder, std::size_t process) {
  return folder + ".out." + std::to_string(process);
}

pid_t start(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment,
            const std::string& out) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process can be started");
  if (child > 0) return child;
  setpgid(0, 0);
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const int file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, 1), dup2(file, 2);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  _exit(127);
}

}  // namespace

std::string content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<ended_process> run_processes(const std::vector<std::string>& command,
                                         const std::vector<std::map<std::string, std::string>>& environments,
                                         const std::string& folder, double seconds) {
  std::vector<pid_t> open;
  for (std::size_t p = 0; p < environments.size(); ++p)
    open.push_back(start(command, environments[p], file_of(folder, p)));
  std::vector<ended_process> out(open.size());
  const double until = now() + seconds;
  for (std::size_t left = open.size(); left > 0; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    for (std::size_t p = 0; p < open.size(); ++p) {
      if (open[p] == 0) continue;
      if (now() > until && !out[p].hung) {
        out[p].hung = true;
        kill(-open[p], SIGCONT), kill(-open[p], SIGKILL);
      }
      int status = 0;
      if (waitpid(open[p], &status, WNOHANG) != open[p]) continue;
      out[p].code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      open[p] = 0;
      --left;
    }
  for (std::size_t p = 0; p < out.size(); ++p) out[p].words = content(file_of(folder, p));
  return out;
}

}  // namespace faults
