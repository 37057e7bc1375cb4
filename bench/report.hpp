// How a program that measures ends where something is wrong.
#pragma once

#include <cfp/core/bad_input.hpp>

#include <cstdio>
#include <exception>

/// Where something was thrown: says it. The exit code is 2 for what was given, else 1.
inline int report() {
  try {
    throw;
  } catch (const cfp::bad_input& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 2;
  } catch (const std::exception& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
  }
}

/// Of a program with options, as well `Refusal`, which is thrown for those that are wrong, and for --help (0).
template <class Refusal, class App>
int report(const App& app) {
  try {
    throw;
  } catch (const Refusal& e) {
    return app.exit(e) == 0 ? 0 : 2;
  } catch (...) {
    return report();
  }
}
