// The files that options name: checked before anything runs.
#pragma once

#include <string>
#include <vector>

namespace program {

struct arguments;

/// The file of somebody's own model or machine; none where it is carried along, or not there: who reads it says so.
std::string own_file(const std::string& folder, const std::string& option, const std::string& asked);

struct named_file {
  const char* option;
  std::string path;
  bool read, written;
};

/// Those that are given. A model or machine by name is none.
std::vector<named_file> named_files(const arguments& a);

/// The whole of a file; nothing where it cannot be read.
std::string contents(const std::string& path);

/// What is wrong with them, or nothing: a directory in the place of a file, one file that is written over what another
/// option names, a place where nothing can be written.
std::string wrong_files(const arguments& a);

}  // namespace program
