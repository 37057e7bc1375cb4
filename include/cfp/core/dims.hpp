// The dimensions of a tensor: ordered names with their sizes. A compound dimension holds several, major first, so that
// a fused weight can be split by one of them: `dims<"width=768", "(three=3 heads=12 d=64)">`. A name behind `~` is one
// that a rule gave, for want of another: it is equal to every name.
#pragma once

#include <cfp/core/parse.hpp>
#include <cfp/core/partition.hpp>
#include <cfp/core/text.hpp>

namespace cfp::inline v0_1 {

/// Dimensions as a value: the parts of all dimensions in order. Names are views: what they are of outlives this.
struct dimensions {
  list<std::string_view, max_dims> parts;
  extents sizes;                      ///< elements; 0 where only run time knows
  list<signed char, max_dims> group;  ///< which written dimension a part belongs to
  list<bool, max_dims> lent;          ///< whether a rule gave the name
  bool readable = true;               ///< whether the texts they come from could be read

  constexpr int rank() const { return parts.size(); }
  constexpr int written() const { return group.empty() ? 0 : group.back() + 1; }
  constexpr int find(std::string_view label) const {
    for (int i = 0; i < parts.size(); ++i)
      if (same(parts[i], label)) return i;
    return -1;
  }
  /// How many parts a written dimension has, and the first of them.
  constexpr int count(int dim) const {
    int n = 0;
    for (signed char g : group) n += g == dim;
    return n;
  }
  constexpr int first(int dim) const { return group.find(static_cast<signed char>(dim)); }
  constexpr void push(std::string_view label, long size, int dim, bool is_lent = false) {
    parts.push(label);
    sizes.push(size);
    group.push(static_cast<signed char>(dim));
    lent.push(is_lent);
  }
  constexpr bool known() const { return !sizes.contains(0); }
  friend constexpr bool operator==(const dimensions&, const dimensions&) = default;
};

namespace detail {

// "batch", "batch=32", "(three=3 heads=12 d=64)": appends the parts to `out`.
constexpr text_error read_dimension(std::string_view source, int dim, dimensions& out) {
  const int end = static_cast<int>(source.size());
  const char* const c = source.data();
  int at = 0;
  const bool compound = end > 0 && c[0] == '(';
  if (compound) ++at;
  do {
    while (compound && at < end && c[at] == ' ') ++at;
    const bool lent = at < end && c[at] == '~';
    if (lent) ++at;
    const int from = at;
    while (at < end && is_name_character(c[at])) ++at;
    if (at == from) return {"expected a name of letters, digits and '_'", at + 1};
    if (at - from > name::capacity) return {"a name has at most 23 characters", from + 1, "has", at - from};
    if (out.parts.size() == max_dims) return {"a tensor has at most 8 dimensions", from + 1};
    const int count = at - from;
    const std::string_view word(c + from, static_cast<std::size_t>(count));
    if (same(word, "partial") || same(word, "partial_max") || same(word, "partial_min") || same(word, "replicated"))
      return {"'partial', 'partial_max', 'partial_min' and 'replicated' are words of partitions, no names", from + 1};
    long size = 0;
    if (at < end && c[at] == '=') {
      const int digits = ++at;
      for (; at < end && c[at] >= '0' && c[at] <= '9'; ++at)
        if (at - digits < 15) size = size * 10 + (c[at] - '0');
      if (at == digits || size == 0 || at - digits > 15) return {"expected a size of at least 1 after '='", at + 1};
    }
    out.push(word, size, dim, lent);
    while (compound && at < end && c[at] == ' ') ++at;
  } while (compound && at < end && c[at] != ')');
  if (compound && at == end) return {"expected ')'", at + 1};
  if (compound) ++at;
  if (at != end) return {"unexpected text after the dimension", at + 1};
  return {};
}

// As long as a dimension can be: eight parts, each with a blank, `~`, a name, `=` and 15 digits, in parentheses.
using dimension_text = text<max_dims*(1 + 1 + name::capacity + 1 + 15) + 1>;
template <int Capacity>
constexpr void write_dimension(const dimensions& d, int dim, text<Capacity>& out) {
  const int first = d.first(dim), count = d.count(dim);
  if (count > 1) out.push('(');
  for (int i = first; i < first + count; ++i) {
    if (i > first) out.push(' ');
    if (d.lent[i]) out.push('~');
    out += d.parts[i];
    if (d.sizes[i] > 0) say(out, "=", d.sizes[i]);
  }
  if (count > 1) out.push(')');
}

// Reads the texts of dimensions; `at` is the text that a problem is of, `twice` a part whose name another one has.
constexpr text_error read_dimensions(const list<std::string_view, max_dims>& texts, dimensions& out, int& at,
                                     int& twice) {
  for (at = 0; at < texts.size(); ++at)
    if (const text_error e = read_dimension(texts[at], at, out)) return e;
  for (int i = 1; i < out.rank(); ++i)
    if (out.find(out.parts[i]) != i) twice = i;
  return {};
}
constexpr dimensions read_dimensions(const list<std::string_view, max_dims>& texts) {
  dimensions out;
  int at = 0, twice = -1;
  out.readable = !read_dimensions(texts, out, at, twice) && twice < 0;
  return out;
}
constexpr sentence dimensions_problem(const list<std::string_view, max_dims>& texts, int& column) {
  dimensions d;
  int at = 0, twice = -1;
  sentence out;
  const text_error e = read_dimensions(texts, d, at, twice);
  column = e.column;
  if (e) say_error(out, e, texts[at]);
  else if (twice >= 0) say(out, "two dimensions are named '", d.parts[twice], "'");
  return out;
}

// The text of a dimension as `write_dimension` writes it.
template <lit Dim>
struct canonical_dim {
  static constexpr dimension_text written = [] {
    dimensions d;
    dimension_text out;
    if (!read_dimension(Dim.view(), 0, d)) write_dimension(d, 0, out);
    return out;
  }();
};

// Whether a text stands as `write_dimension` writes it: one blank between parts, no zero before a size.
constexpr bool stands_canonically(std::string_view source) {
  for (std::size_t i = 0; i + 1 < source.size(); ++i)
    if ((source[i] == ' ' && (source[i + 1] == ' ' || source[i + 1] == ')')) ||
        (source[i] == '(' && source[i + 1] == ' ') || (source[i] == '=' && source[i + 1] == '0'))
      return false;
  return source.empty() || source[0] != '(' || position(source, " ") >= 0;
}

template <lit Dim>
consteval auto canonical_text() {
  if constexpr (stands_canonically(Dim.view())) return Dim;
  else return shorten<canonical_dim<Dim>::written.count>(canonical_dim<Dim>::written);
}

}  // namespace detail

/// Dimensions as a type: `dims<"batch=32", "seq", "(heads=12 d=64)">`; without a size, run time decides.
template <lit... Dim>
struct dims {
  static_assert(sizeof...(Dim) <= max_dims, "a tensor has at most 8 dimensions");
  static constexpr dimensions value = detail::read_dimensions({{Dim.view()...}, sizeof...(Dim)});

  /// Why they cannot be read, or empty; the column is 0 where names are equal.
  static constexpr sentence problem() {
    int column = 0;
    return detail::dimensions_problem({{Dim.view()...}, sizeof...(Dim)}, column);
  }
  static constexpr int problem_column() {
    int column = 0;
    detail::dimensions_problem({{Dim.view()...}, sizeof...(Dim)}, column);
    return column;
  }

  /// The same, written canonically.
  template <bool Canonical, int = 0>
  struct canonical {
    using type = dims;
  };
  template <int Again>
  struct canonical<false, Again> {
    using type = dims<detail::canonical_text<Dim>()...>;
  };
  static constexpr bool stands_canonically() { return (detail::stands_canonically(Dim.view()) && ...); }
};

}  // namespace cfp
