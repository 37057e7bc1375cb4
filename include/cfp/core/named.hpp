// Tensors with names: what a sentence calls them, and what an element of theirs takes. And the same tensor with a
// dimension called otherwise.
#pragma once

#include <cfp/core/sharded.hpp>

namespace cfp::inline v0_1 {

/// A partitioned tensor with a name and the type of its elements; everything that takes a partitioned tensor takes it.
/// A tensor may be held in several partitions: the same name, each time with another type.
template <lit Name, class Tensor, class Element = float>
struct held_as : Tensor {
  static constexpr auto text = Name;
  static constexpr std::string_view name = text.view();
  static constexpr long element_bytes = sizeof(Element);
  using type = Tensor;
  using element_type = Element;
};

/// The same tensor of another layer: its name ends in the number. Types alone are handed on, so that nvcc follows.
template <int Index, class T>
struct numbered : T {
  static constexpr auto with_number = [] {
    long_name out;
    say(out, T::name, ".", static_cast<long>(Index));
    return out;
  }();
  static constexpr auto text = shorten<with_number.count>(with_number);
  static constexpr std::string_view name = text.view();
};
template <int Index, is_refused T>
struct numbered<Index, T> : refused {};

/// An element of which only the size matters.
template <int Bytes>
struct element_of {
  unsigned char bytes[Bytes];
};

namespace detail {

template <class T>
constexpr std::string_view name_of() {
  if constexpr (requires { T::name; }) return T::name;
  else return {};
}
// Which type the elements of a named tensor have, by the letters of its name (FNV-1a); 0 where it has none. (Addresses
// would do, but g++'s sanitizers compare none in constants.)
template <class Element>
constexpr unsigned long element_number() {
  unsigned long out = 14695981039346656037UL;
  for (char c : std::string_view(__PRETTY_FUNCTION__)) out = (out ^ static_cast<unsigned char>(c)) * 1099511628211UL;
  return out;
}
template <class T>
constexpr unsigned long element_of_named() {
  if constexpr (requires { typename T::element_type; }) return element_number<typename T::element_type>();
  else return 0;
}
template <class T>
constexpr long element_bytes_of() {
  if constexpr (requires { T::element_bytes; }) return T::element_bytes;
  else return 4;
}

// The same tensor in another partition: its name and its elements stay. (nvcc matches no specialization by a text, and
// loses one that is handed on; as a member it finds it.)
template <class T, class Partitioned>
struct named_as {
  using type = Partitioned;
};
template <class T, class Partitioned>
  requires requires { typename T::element_type; }
struct named_as<T, Partitioned> {
  using type = held_as<T::text, Partitioned, typename T::element_type>;
};

struct renamed_texts {
  text<159> dim[max_dims]{};
  text<255> placement;
  sentence why;
};

constexpr renamed_texts rename(std::string_view name, dimensions d, const partition& held, const mesh_shape& mesh,
                               std::string_view from, std::string_view to) {
  renamed_texts out;
  const int at = d.find(from);
  if (at < 0 || d.find(to) >= 0) {
    say(out.why, name, name.empty() ? "" : ": ", "the tensor has ", at < 0 ? "no" : "a", " dimension '",
        at < 0 ? from : to, "'");
    if (at >= 0) say(out.why, " already, '", from, "' cannot be renamed to it");
    else say(out.why, " to rename; its dimensions are "), say_names(out.why, d.parts);
    return out;
  }
  d.parts[at] = to;
  d.lent[at] = false;
  for (int i = 0; i < d.written(); ++i) write_dimension(d, i, out.dim[i]);
  out.placement = describe(held, d.parts, mesh);
  return out;
}

template <class T, lit From, lit To>
struct renaming {
  static constexpr renamed_texts texts = [] {
    if constexpr (is_refused<T>) return renamed_texts{};
    else return rename(name_of<T>(), T::dims_type::value, T::held, T::mesh_type::shape, From.view(), To.view());
  }();
  template <int... Index>
  static auto make(std::integer_sequence<int, Index...>)
      -> partitioned<dims<shorten<texts.dim[Index].count>(texts.dim[Index])...>, typename T::mesh_type,
                     shorten<texts.placement.count>(texts.placement)>;
  static auto found() {
    if constexpr (is_refused<T>) return static_cast<refused*>(nullptr);
    else if constexpr (texts.why.empty())
      return static_cast<typename named_as<
          T, decltype(make(std::make_integer_sequence<int, T::dims_type::value.written()>{}))>::type*>(nullptr);
    else return say_why();
  }
  static refused* say_why() {
    static_assert(dimension_is_of_the_tensor<said<shorten<texts.why.count>(texts.why)>>());
    return nullptr;
  }
  using type = std::remove_pointer_t<decltype(found())>;
};

}  // namespace detail

/// The same tensor with one dimension called otherwise: operators refuse operands that call one factor differently, and
/// this says that it is meant.
template <class T, lit From, lit To>
struct renamed : detail::renaming<T, From, To>::type {};

}  // namespace cfp
