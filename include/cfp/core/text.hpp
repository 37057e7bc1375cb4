// A short text that is a value: names of axes, dimensions and tensors, and the rules written as template arguments.
#pragma once

#include <cfp/core/limit.hpp>

#include <cstddef>
#include <string_view>

namespace cfp::inline v0_1 {

/// Equality, cheap in constant expressions.
constexpr bool same(const char* a, std::size_t a_count, const char* b, std::size_t b_count) {
  if (a_count != b_count) return false;
  for (std::size_t i = 0; i < a_count; ++i)
    if (a[i] != b[i]) return false;
  return true;
}
constexpr bool same(std::string_view a, std::string_view b) { return same(a.data(), a.size(), b.data(), b.size()); }

/// Position of `what` in `s` from `from` on, or -1. (The standard library's search is not constant under g++'s
/// sanitizers.)
constexpr int position(std::string_view s, std::string_view what, int from = 0) {
  const int last = static_cast<int>(s.size()) - static_cast<int>(what.size());
  for (int at = from; at <= last; ++at)
    if (same(s.data() + at, what.size(), what.data(), what.size())) return at;
  return -1;
}

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}
constexpr bool is_name(std::string_view s) {
  for (char c : s)
    if (!is_name_character(c)) return false;
  return !s.empty();
}

/// Up to `Capacity` characters, comparable, usable as a template argument.
template <int Capacity>
struct text {
  static constexpr int capacity = Capacity;
  char characters[static_cast<unsigned>(Capacity) + 1]{};
  int count = 0;

  constexpr text() = default;
  constexpr text(std::string_view from) : count(static_cast<int>(from.size())) {
    if (count > Capacity) throw limit_reached(from, from.size(), Capacity);
    for (int i = 0; i < count; ++i) characters[i] = from[static_cast<std::size_t>(i)];
  }
  constexpr text(const char* from) : text(std::string_view(from)) {}

  constexpr void push(char c) {
    if (count == Capacity) throw limit_reached(view(), static_cast<std::size_t>(Capacity) + 1, Capacity);
    characters[count++] = c;
  }
  constexpr text& operator+=(std::string_view more) {
    const unsigned n = static_cast<unsigned>(more.size()), from = static_cast<unsigned>(count);
    if (from > static_cast<unsigned>(Capacity) || n > static_cast<unsigned>(Capacity) - from)
      throw limit_reached(more, from + more.size(), Capacity);
    std::char_traits<char>::copy(characters + from, more.data(), n);
    count += static_cast<int>(n);
    return *this;
  }
  constexpr std::string_view view() const { return {characters, static_cast<std::size_t>(count)}; }
  constexpr operator std::string_view() const { return view(); }
  constexpr bool empty() const { return count == 0; }

  friend constexpr bool operator==(const text& a, const text& b) {
    return same(a.characters, static_cast<std::size_t>(a.count), b.characters, static_cast<std::size_t>(b.count));
  }
  friend constexpr bool operator==(const text& a, std::string_view b) {
    return same(a.characters, static_cast<std::size_t>(a.count), b.data(), b.size());
  }
  friend constexpr bool operator==(const text& a, const char* b) { return a.view() == b; }
};

/// Names of mesh axes, dimensions and factors.
using name = text<23>;

/// What a message says.
using sentence = text<511>;

/// Appends a number.
template <int Capacity>
constexpr void append(text<Capacity>& to, long number) {
  if (number < 0) to.push('-'), number = -number;
  long unit = 1;
  while (number / unit >= 10) unit *= 10;
  for (; unit > 0; unit /= 10) to.push(static_cast<char>('0' + number / unit % 10));
}

/// Appends words and numbers in order.
template <int Capacity, class... Piece>
constexpr void say(text<Capacity>& to, const Piece&... piece) {
  const auto one = [&](const auto& one_piece) {
    if constexpr (requires { std::string_view(one_piece); }) {
      std::string_view words(one_piece);
      if (const auto room = static_cast<std::size_t>(Capacity - to.count);
          Capacity == sentence::capacity && words.size() > room)
        words = words.substr(0, room);  // a message may end early
      to += words;
    } else {
      text<23> digits;
      append(digits, one_piece);
      if (Capacity != sentence::capacity || digits.count <= Capacity - to.count) to += digits.view();
    }
  };
  (one(piece), ...);
}

/// Names of tensors, in the words of public checkpoints (`h.11.attn.c_attn.weight`).
using long_name = text<119>;

/// A text as a template argument, as long as it is: names, rules, sentences.
template <unsigned N>
struct lit {
  char characters[N]{};
  constexpr lit() = default;
  constexpr lit(const char (&from)[N]) {
    for (unsigned i = 0; i < N; ++i) characters[i] = from[i];
  }
  constexpr std::string_view view() const { return {characters, N - 1}; }
  constexpr const char* data() const { return characters; }
  constexpr std::size_t size() const { return N - 1; }
};

/// A text without its empty room: `shorten<t.count>(t)`.
template <int Count, int Capacity>
constexpr lit<static_cast<unsigned>(Count) + 1> shorten(const text<Capacity>& from) {
  lit<static_cast<unsigned>(Count) + 1> out;
  const char* const c = from.characters;
  for (int i = 0; i < Count; ++i) out.characters[i] = c[i];
  return out;
}
}  // namespace cfp
