// Models and machines that are carried along, by name.
#pragma once

#include <cfp/families/carried_file.hpp>

inline std::string carried_in(const char* folder, const std::string& asked) {
  return cfp::families::find_carried({std::filesystem::path(CFP_SOURCE_DIR) / "examples" / folder}, asked).path;
}
inline std::string carried_model(const std::string& asked) { return carried_in("models", asked); }
inline std::string carried_machine(const std::string& asked) { return carried_in("machines", asked); }
