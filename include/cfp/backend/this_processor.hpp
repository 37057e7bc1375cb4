// What this machine computes with, in words.
#pragma once

#include <fstream>
#include <string>
#include <thread>

namespace cfp::inline v0_1 {

/// Processor name and hardware threads.
inline std::string this_processor() {
  std::string cpu = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) {
      cpu = line.substr(line.find(':') + 2);
      break;
    }
  return cpu.append(", ").append(std::to_string(std::thread::hardware_concurrency())).append(" threads");
}

}  // namespace cfp
