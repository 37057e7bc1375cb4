// The dimensions of a tensor: ordered names with their sizes. A compound dimension holds several, major first, so that
// a fused weight can be split by one of them: `dims<"width=768", "(three=3 heads=12 d=64)">`.
#pragma once

#include <cfp/core/parse.hpp>
#include <cfp/core/partition.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

/// Dimensions as a value: the parts of all dimensions in order.
struct dimensions {
  list<name, max_dims> parts;
  extents sizes;                      ///< elements; 0 where only run time knows
  list<signed char, max_dims> group;  ///< which written dimension a part belongs to

  constexpr int rank() const { return parts.size(); }
  constexpr int written() const { return group.empty() ? 0 : group.back() + 1; }
  constexpr int find(std::string_view label) const {
    for (int i = 0; i < parts.size(); ++i)
      if (parts[i] == label) return i;
    return -1;
  }
  /// How many parts a written dimension has, and the first of them.
  constexpr int count(int dim) const {
    int n = 0;
    for (signed char g : group) n += g == dim;
    return n;
  }
  constexpr int first(int dim) const { return group.find(static_cast<signed char>(dim)); }
  constexpr void push(const name& label, long size, int dim) {
    parts.push(label);
    sizes.push(size);
    group.push(static_cast<signed char>(dim));
  }
  constexpr bool known() const { return !sizes.contains(0); }
  friend constexpr bool operator==(const dimensions&, const dimensions&) = default;
};

namespace detail {

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

// "batch", "batch=32", "(three=3 heads=12 d=64)": appends the parts to `out`.
constexpr text_error read_dimension(std::string_view source, int dim, dimensions& out) {
  std::size_t at = 0;
  const auto peek = [&] { return at < source.size() ? source[at] : '\0'; };
  const auto fail = [&](const char* what) { return text_error{what, static_cast<int>(at) + 1}; };
  const bool compound = peek() == '(';
  if (compound) ++at;
  do {
    while (compound && peek() == ' ') ++at;
    const std::size_t from = at;
    while (is_name_character(peek())) ++at;
    if (at == from) return fail("expected a name of letters, digits and '_'");
    if (at - from > static_cast<std::size_t>(name::capacity)) return fail("a name has at most 23 characters");
    if (out.parts.size() == max_dims) return fail("a tensor has at most 8 dimensions");
    const name label(source.substr(from, at - from));
    long size = 0;
    if (peek() == '=') {
      ++at;
      const std::size_t digits = at;
      while (peek() >= '0' && peek() <= '9') size = size * 10 + (source[at++] - '0');
      if (at == digits || size == 0 || at - digits > 15) return fail("expected a size of at least 1 after '='");
    }
    out.push(label, size, dim);
    while (compound && peek() == ' ') ++at;
  } while (compound && at < source.size() && peek() != ')');
  if (compound && peek() != ')') return fail("expected ')'");
  if (compound) ++at;
  if (at != source.size()) return fail("unexpected text after the dimension");
  return {};
}

template <int Capacity>
constexpr void write_dimension(const dimensions& d, int dim, text<Capacity>& out) {
  const int first = d.first(dim), count = d.count(dim);
  if (count > 1) out.push('(');
  for (int i = first; i < first + count; ++i) {
    if (i > first) out.push(' ');
    out += d.parts[i].view();
    if (d.sizes[i] > 0) say(out, "=", d.sizes[i]);
  }
  if (count > 1) out.push(')');
}

struct dimensions_read {
  dimensions value{};
  text_error problem{};
  int at = 0;      // which text the problem is of
  int twice = -1;  // a part whose name another one has
};

template <lit... Dim>
constexpr dimensions_read read_dimensions() {
  dimensions_read out;
  [[maybe_unused]] const auto next = [&](std::string_view source) {
    if (out.problem) return;
    out.problem = read_dimension(source, out.at, out.value);
    if (!out.problem) ++out.at;
  };
  (next(Dim.view()), ...);
  for (int i = 0; i < out.value.rank(); ++i)
    if (out.value.find(out.value.parts[i].view()) != i) out.twice = i;
  return out;
}

// The text of a dimension as `write_dimension` writes it.
template <lit Dim>
struct canonical_dim {
  static constexpr text<159> written = [] {
    dimensions d;
    text<159> out;
    if (!read_dimension(Dim.view(), 0, d)) write_dimension(d, 0, out);
    return out;
  }();
};

// Whether a text stands as `write_dimension` writes it: one blank between parts, no zero before a size.
constexpr bool stands_canonically(std::string_view source) {
  for (std::size_t i = 0; i + 1 < source.size(); ++i)
    if ((source[i] == ' ' && (source[i + 1] == ' ' || source[i + 1] == ')')) || (source[i] == '(' && source[i + 1] == ' ') ||
        (source[i] == '=' && source[i + 1] == '0'))
      return false;
  return source.empty() || source[0] != '(' || source.find(' ') != std::string_view::npos;
}

template <bool Canonical, lit Dim>
consteval auto canonical_text() {
  if constexpr (Canonical) return Dim;
  else return shorten<canonical_dim<Dim>::written.count>(canonical_dim<Dim>::written);
}

}  // namespace detail

/// Dimensions as a type: `dims<"batch=32", "seq", "(heads=12 d=64)">`; without a size, run time decides.
template <lit... Dim>
struct dims {
  static constexpr detail::dimensions_read read = detail::read_dimensions<Dim...>();
  static constexpr dimensions value = read.value;

  /// Why they cannot be read, or empty.
  static constexpr sentence problem() {
    const std::string_view texts[] = {Dim.view()..., ""};
    sentence out;
    if (read.problem) say(out, read.problem.what, ", column ", static_cast<long>(read.problem.column), " of \"", texts[read.at], "\"");
    else if (read.twice >= 0) say(out, "two dimensions are named '", value.parts[read.twice].view(), "'");
    return out;
  }

  template <int>
  struct as_canonical {
    using type = dims<detail::canonical_text<detail::stands_canonically(Dim.view()), Dim>()...>;
  };
  using canonical = typename as_canonical<0>::type;
};

}  // namespace cfp
