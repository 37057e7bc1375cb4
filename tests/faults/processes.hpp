// Processes that are started together, waited for, and their words.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace faults {

struct ended_process {
  int code = 0;       ///< exit code, or 128 and the signal
  bool hung = false;  ///< it was ended from outside
  std::string words;  ///< standard output and error
};

/// Starts one process per environment, waits until all have ended, or for so many seconds: then they are killed.
std::vector<ended_process> run_processes(const std::vector<std::string>& command,
                                         const std::vector<std::map<std::string, std::string>>& environments,
                                         const std::string& folder, double seconds);

/// The whole of a file, nothing where it is none.
std::string content(const std::string& file);

}  // namespace faults
