// What values options take. Each check says in one sentence what is wrong.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstddef>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace program {

/// A number from `least` to `most`, a whole one where T is; unless `most` is given any that T holds.
template <class T>
CLI::Validator within(T least, T most = std::numeric_limits<T>::max()) {
  std::ostringstream what;
  what << (std::is_integral_v<T> ? "whole number " : "number ");
  if (std::is_integral_v<T> || most < std::numeric_limits<T>::max()) what << "from " << least << " to " << most;
  else what << "of " << least << " or more";
  const auto check = [least, most, words = what.str()](std::string& text) {
    T n{};
    const char* const end = text.data() + text.size();
    const auto [at, wrong] = std::from_chars(text.data(), end, n);
    if (wrong != std::errc() || at != end || !(n >= least && n <= most)) return "it is a " + words + ", got: " + text;
    if constexpr (std::is_integral_v<T>) text = std::to_string(n);  // "010" is ten
    return std::string();
  };
  return CLI::Validator(check, what.str());
}

/// Bytes, 1 or more: "1500", "16GiB"; units are KiB, MiB and GiB.
inline CLI::Validator bytes() {
  const auto check = [](std::string& text) {
    static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
    long times = 1;
    std::string number = text;
    for (int u = 0; u < 4; ++u)
      if (text.ends_with(units[u])) times = 1L << (10 * (u + 1)), number = text.substr(0, text.size() - 3);
    double n = 0;
    const auto [at, wrong] = std::from_chars(number.data(), number.data() + number.size(), n);
    const double all = n * static_cast<double>(times);
    if (wrong != std::errc() || at != number.data() + number.size() || !(all >= 1 && all <= 1L << 50))
      return "it is a number of bytes such as 1500000000 or 16GiB, from 1 to " + std::to_string(1L << 50) +
             ", got: " + text;
    text = std::to_string(static_cast<long>(all));
    return std::string();
  };
  return CLI::Validator(check, "BYTES");
}

/// "2%" as 0.02; -1 where it is none.
inline double percent(const std::string& share) {
  const char* const end = share.data() + share.size() - (share.ends_with('%') ? 1 : 0);
  double out = 0;
  const auto [at, wrong] = std::from_chars(share.data(), end, out);
  const bool is = wrong == std::errc() && at == end && (share.ends_with('%') || out == 0) && out >= 0 && out <= 100;
  return is ? out / 100 : -1;
}

/// An empty text is a value of no option.
inline void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* const o : command.get_options())
    o->transform(CLI::Validator(
        [](std::string& text) { return text.empty() ? "its value is an empty text" : std::string(); }, ""));
}

/// Lists have no empty elements; the parser leaves them out.
inline void refuse_empty_elements(const CLI::App& command, const std::vector<std::string>& words) {
  for (const CLI::Option* const o : command.get_options()) {
    if (o->get_delimiter() == '\0') continue;
    const std::string name = o->get_name(), with = name + "=";
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::string list;
      if (words[i].starts_with(with)) list = words[i].substr(with.size());
      else if (words[i] == name && i + 1 < words.size()) list = words[i + 1];
      else continue;
      if (("," + list + ",").find(",,") != std::string::npos)
        throw CLI::ValidationError(name, "an element of its list is empty, got: " + list);
    }
  }
}

}  // namespace program
