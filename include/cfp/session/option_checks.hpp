// What a session's options must be.
#pragma once

#include <cfp/core/bad_input.hpp>
#include <cfp/model/checked.hpp>
#include <cfp/session/session.hpp>
#include <cfp/session/texts.hpp>

#include <string>

namespace cfp::inline v0_1 {

namespace detail {

/// Throws bad_input.
inline void check(const session_options& o) {
  if (!(o.deadline > 0 && o.deadline <= 1e9))
    throw bad_input("deadline must be seconds, more than 0 and at most 1e9, is " + detail::printed("%g", o.deadline));
  if (!(o.tolerance >= 0 && o.tolerance <= 1))
    throw bad_input("tolerance must be a share of the time, from 0 to 1, is " + detail::printed("%g", o.tolerance));
  if (o.tolerance > 0 && !o.lazy)
    throw bad_input("tolerance is of a lazy search alone, which then measures less: set lazy too, or leave it out");
  checked_name(o.name);
  try {
    nlohmann::json(o.name).dump();
  } catch (const nlohmann::json::exception&) {
    throw bad_input("name must be a text in UTF-8: plans and tables call the model so");
  }
  if (o.memory < 0) throw bad_input("memory must be bytes, or 0 for any, is " + std::to_string(o.memory));
}

inline void check(const batch_source& batches) {
  if (!batches) throw bad_input("there is no data: the source of batches is an empty function");
}

}  // namespace detail

}  // namespace cfp
