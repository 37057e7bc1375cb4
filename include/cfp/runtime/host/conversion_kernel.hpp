// Conversions on one rank: packing around collectives, and the local steps (slice, mask, pad).
#pragma once

#include <cfp/runtime/communicator.hpp>
#include <cfp/runtime/program.hpp>

#include <algorithm>
#include <cstring>

namespace cfp::inline v0_1::host {

/// A tensor seen around one dimension: [outer][extent][inner].
struct around {
  long outer = 1, extent = 1, inner = 1;
};
inline around view_around(const extents& shape, int dim) {
  around a;
  for (int d = 0; d < shape.size(); ++d) (d < dim ? a.outer : d == dim ? a.extent : a.inner) *= shape[d];
  return a;
}

/// Moves piece `k` of `n` of a dimension between the whole tensor and packed memory.
template <class T, bool ToPacked>
void move_piece(T* whole, T* packed, const around& w, long n, long k) {
  const long row = w.extent / n * w.inner;
  for (long o = 0; o < w.outer; ++o) {
    T* a = whole + o * w.extent * w.inner + k * row;
    T* b = packed + o * row;
    std::memcpy(ToPacked ? b : a, ToPacked ? a : b, static_cast<std::size_t>(row) * sizeof(T));
  }
}

/// Runs one conversion step. `in`, `out`, `scratch` are the memory of the instruction's buffers; `axis` the ranks it is among.
template <class T, class Communicator>
void run_conversion(const conversion_step& s, const buffer& from, const buffer& to, T* in, T* out, T* scratch0,
                    T* scratch1, const mesh_shape& mesh, int device, const Communicator& axis) {
  using step = conversion_step;
  const long n = mesh.size(s.axis), mine = mesh.coordinate(device, s.axis);
  const std::size_t count_in = static_cast<std::size_t>(elements(from.local));
  const std::size_t count_out = static_cast<std::size_t>(elements(to.local));
  switch (s.kind) {
    case step::all_reduce:
      if (in != out) std::memcpy(out, in, count_in * sizeof(T));
      axis.all_reduce(out, count_in, s.combine);
      break;
    case step::all_gather: {
      const around w = view_around(to.local, s.dim);
      axis.all_gather(in, scratch0 ? scratch0 : out, count_in);
      if (scratch0)
        for (long k = 0; k < n; ++k) move_piece<T, false>(out, scratch0 + k * static_cast<long>(count_in), w, n, k);
      break;
    }
    case step::reduce_scatter: {
      const around w = view_around(from.local, s.dim);
      if (scratch0)
        for (long k = 0; k < n; ++k) move_piece<T, true>(in, scratch0 + k * static_cast<long>(count_out), w, n, k);
      axis.reduce_scatter(scratch0 ? scratch0 : in, out, count_out, s.combine);
      break;
    }
    case step::all_to_all: {
      const around pack = view_around(from.local, s.to), unpack = view_around(to.local, s.dim);
      const long piece = static_cast<long>(count_in) / n;
      for (long k = 0; k < n; ++k) move_piece<T, true>(in, scratch0 + k * piece, pack, n, k);
      axis.all_to_all(scratch0, scratch1, static_cast<std::size_t>(piece));
      for (long k = 0; k < n; ++k) move_piece<T, false>(out, scratch1 + k * piece, unpack, n, k);
      break;
    }
    case step::slice: move_piece<T, true>(in, out, view_around(from.local, s.dim), n, mine); break;
    case step::mask:
      if (mine == 0) std::memcpy(out, in, count_in * sizeof(T));
      else std::fill_n(out, count_out, T{});
      break;
    case step::pad:
      std::fill_n(out, count_out, T{});
      move_piece<T, false>(out, in, view_around(to.local, s.dim), n, mine);
      break;
  }
}

}  // namespace cfp::host
