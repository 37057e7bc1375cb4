// What every fuzzer is made of: its source says `readers`, which errors are `ours`, and `write_seeds`.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

namespace fuzz {

struct reader {
  std::string_view name;
  void (*read)(const std::string& input);
};
extern const std::vector<reader> readers;

/// Whether it is of a kind that says sentences; of others nobody knows what they say.
bool ours(const std::exception& e);

/// What our own writers write: FOLDER/READER/NUMBER.
void write_seeds(const std::string& folder);

/// Ends the program where what must hold does not: libFuzzer keeps the input.
inline void must(bool holds, const std::string& what) {
  if (holds) return;
  std::cerr << "must hold: " << what << std::endl;
  std::abort();
}

/// One line, of words, that bears nothing of the JSON library.
inline void check_words(const std::string& what, const std::string& input) {
  must(what.find(' ') != std::string::npos, "a refusal is a sentence: '" + what + "'");
  for (const char c : what) must(static_cast<unsigned char>(c) >= ' ', "a refusal is one line: '" + what + "'");
  must(what.find("[json.") == std::string::npos || input.find("[json.") != std::string::npos,
       "ours, not '" + what + "'");
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  static const reader& chosen = []() -> const reader& {
    const char* const name = std::getenv("CFP_FUZZ");
    for (const reader& r : readers)
      if (name != nullptr && r.name == name) return r;
    std::cerr << "CFP_FUZZ must be one of";
    for (const reader& r : readers) std::cerr << ' ' << r.name;
    std::cerr << '\n';
    std::exit(2);
  }();
  const std::string input(reinterpret_cast<const char*>(data), size);
  try {
    chosen.read(input);
  } catch (const std::exception& e) {
    must(ours(e), std::string("an error of the readers, not ") + typeid(e).name() + ": " + e.what());
    check_words(e.what(), input);
  }
  return 0;
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* const folder = std::getenv("CFP_FUZZ_SEEDS")) {
    fuzz::write_seeds(folder);
    std::exit(0);
  }
  return 0;
}
