// What one of several processes does for all of them, such as writing a file.
#pragma once

#include <cfp/backend/backend.hpp>
#include <cfp/core/bad_input.hpp>

#include <cstddef>
#include <exception>
#include <span>
#include <string>

namespace cfp::inline v0_1 {

/// Calls f() in the first process of the ranks. All processes call this, and if that throws bad_input all do: none goes
/// on, or waits for one that has ended.
template <class F>
void in_first_process(backend& on, F&& f) {
  std::exception_ptr thrown;
  std::string why;
  if (on.is_first()) try {
      f();
    } catch (const bad_input& e) {
      thrown = std::current_exception();
      why = e.what();
    }
  on.run([&](rank& r) {
    std::string said = why;
    std::size_t size = said.size();
    r.agree(std::as_writable_bytes(std::span(&size, 1)));
    said.resize(size);
    if (size > 0) r.agree(std::as_writable_bytes(std::span(said)));
    r.barrier();
    if (r.leads()) why = said;
  });
  if (thrown) std::rethrow_exception(thrown);
  if (!why.empty()) throw bad_input(why);
}

}  // namespace cfp
