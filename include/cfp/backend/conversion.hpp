// Conversions on one rank: packing around collectives, and the local steps (slice, mask, pad), wherever its memory is.
#pragma once

#include <cfp/communicator/communicator.hpp>
#include <cfp/core/bad_input.hpp>
#include <cfp/program/around.hpp>
#include <cfp/program/program.hpp>

#include <cstring>

namespace cfp::inline v0_1 {

/// Moves bytes in the memory of this process. That of a GPU has a mover of its own.
struct host_mover {
  void copy(void* to, const void* from, long bytes) const { std::memcpy(to, from, static_cast<std::size_t>(bytes)); }
  void zero(void* to, long bytes) const { std::memset(to, 0, static_cast<std::size_t>(bytes)); }
  /// Rows of `bytes`, so many bytes from one to the next on either side.
  void copy_rows(void* to, long to_step, const void* from, long from_step, long bytes, long rows) const {
    for (long r = 0; r < rows; ++r)
      copy(static_cast<std::byte*>(to) + r * to_step, static_cast<const std::byte*>(from) + r * from_step, bytes);
  }
};

namespace detail {

/// Moves piece `k` of `n` of a dimension from the whole tensor to packed memory.
template <class T, class Mover>
void pack(const Mover& by, const T* whole, T* packed, const around& w, long n, long k) {
  constexpr long size = sizeof(T);
  const long row = w.extent / n * w.inner;
  by.copy_rows(packed, row * size, whole + k * row, w.extent * w.inner * size, row * size, w.outer);
}
/// And back.
template <class T, class Mover>
void unpack(const Mover& by, T* whole, const T* packed, const around& w, long n, long k) {
  constexpr long size = sizeof(T);
  const long row = w.extent / n * w.inner;
  by.copy_rows(whole + k * row, w.extent * w.inner * size, packed, row * size, row * size, w.outer);
}

}  // namespace detail

/// Runs one conversion step. `in`, `out`, `scratch` are the memory of the instruction's buffers; `among` the ranks
/// along its axes.
template <class T, class Mover, class Communicator>
void run_conversion(const Mover& by, const conversion_step& s, const buffer& from, const buffer& to, T* in, T* out,
                    T* scratch0, T* scratch1, const mesh_shape& mesh, int device, const Communicator& among) {
  using step = conversion_step;
  using detail::pack, detail::unpack;
  const long n = s.devices(mesh), mine = mesh.coordinate(device, s.axis);  // the latter of what one axis does alone
  const long count_in = elements(from.local), count_out = elements(to.local);
  const auto bytes = [](long count) { return count * static_cast<long>(sizeof(T)); };
  const auto size = [](long count) { return static_cast<std::size_t>(count); };
  switch (s.kind) {
    case step::all_reduce:
      if (in != out) by.copy(out, in, bytes(count_in));
      among.all_reduce(out, size(count_in), s.combine);
      break;
    case step::all_gather: {
      const around w = view_around(to.local, s.dim);
      among.all_gather(in, scratch0 ? scratch0 : out, size(count_in));
      if (scratch0)
        for (long k = 0; k < n; ++k) unpack(by, out, scratch0 + k * count_in, w, n, k);
      break;
    }
    case step::reduce_scatter: {
      const around w = view_around(from.local, s.dim);
      if (scratch0)
        for (long k = 0; k < n; ++k) pack(by, in, scratch0 + k * count_out, w, n, k);
      among.reduce_scatter(scratch0 ? scratch0 : in, out, size(count_out), s.combine);
      break;
    }
    case step::all_to_all: {
      const around whole = view_around(from.local, s.to), pieces = view_around(to.local, s.dim);
      const long piece = count_in / n;
      for (long k = 0; k < n; ++k) pack(by, in, scratch0 + k * piece, whole, n, k);
      among.all_to_all(scratch0, scratch1, size(piece));
      for (long k = 0; k < n; ++k) unpack(by, out, scratch1 + k * piece, pieces, n, k);
      break;
    }
    case step::slice: pack(by, in, out, view_around(from.local, s.dim), n, mine); break;
    case step::mask:
      if (mine == 0) by.copy(out, in, bytes(count_in));
      else by.zero(out, bytes(count_out));
      break;
    case step::pad:
      by.zero(out, bytes(count_out));
      unpack(by, out, in, view_around(to.local, s.dim), n, mine);
      break;
  }
}

/// Calls f with a number as the elements of a tensor are stored that is converted; others are as T.
template <class T, class F>
void as_converted(element type, const F& f) {
  switch (type) {
    case element::real: f(T()); break;
    case element::wide: f(wide_t<T>()); break;
    case element::index: throw bad_input("indices are given in every partition and never converted");
    case element::bfloat16:
    case element::blocks8: throw bad_input("optimizer state stays where it rests and is never converted");
  }
}

/// Runs a send or a receive; `other`: the pair of this rank and the one it is with.
template <class Communicator>
void run_crossing(const program& p, const instruction& i, void* at, const Communicator& other) {
  const auto bytes = static_cast<std::size_t>(p[i.crossed()].bytes);
  if (i.kind == instruction::send) other.send(static_cast<const std::byte*>(at), bytes);
  else other.receive(static_cast<std::byte*>(at), bytes);
}

}  // namespace cfp
