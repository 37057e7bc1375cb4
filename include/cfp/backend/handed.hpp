// Scans on one rank: what lies at its border goes to the next rank along the axis, wherever memory is.
#pragma once

#include <cfp/backend/conversion.hpp>
#include <cfp/program/handed.hpp>

namespace cfp::inline v0_1 {

namespace detail {

/// What ranks along an axis hand on, in a queue of a device.
template <class T, class Device, class Queue>
struct border {
  Device& on;
  const Queue& q;
  const handed& h;

  void send(const T* at, long count) const {
    if (h.next() >= 0) on.pair(h.axis, h.next(), true, q).send(at, static_cast<std::size_t>(count), h.collective());
  }
  /// Zero where nobody is before.
  void receive(T* at, long count) const {
    if (h.previous() >= 0)
      on.pair(h.axis, h.previous(), false, q).receive(at, static_cast<std::size_t>(count), h.collective());
    else on.mover(q).zero(at, count * static_cast<long>(sizeof(T)));
  }
  /// All at once. Every other rank sends first, so that none waits for one that waits for it.
  void exchange(const T* sent, T* come, long count) const {
    if (h.mine % 2 == 0) send(sent, count);
    receive(come, count);
    if (h.mine % 2 != 0) send(sent, count);
  }
};

template <class T, class Device, class Queue>
void run_shift(const border<T, Device, Queue>& at, const T* in, T* out, T* sent, T* come) {
  const handed& h = at.h;
  const auto& by = at.on.mover(at.q);
  const around& w = h.rows;
  const long size = sizeof(T), row = w.inner * size, all = w.extent * row;
  by.copy_rows(sent, row, in + h.position(w.extent - 1) * w.inner, all, row, w.outer);
  const long first = h.how.step > 0 ? 0 : 1;  // of those that stay here
  if (w.extent > 1) by.copy_rows(out + (1 - first) * w.inner, all, in + first * w.inner, all, all - row, w.outer);
  if (h.axis < 0 && h.how.around) by.copy(come, sent, h.edge() * size);
  else at.exchange(sent, come, h.edge());
  by.copy_rows(out + h.position(0) * w.inner, all, come, row, row, w.outer);
}

template <class T, class Device, class Queue>
void run_all_scan(const border<T, Device, Queue>& at, const T* in, const T* kept, T* out, T* carry) {
  const handed& h = at.h;
  const around& w = h.rows;
  const long count = h.slice * w.inner, wide = h.per > 0 ? w.inner / h.per : 0;
  for (long s = 0; s < h.slices(); ++s) {
    T* const mine = carry + s * count;
    at.receive(mine, count);
    for (long k = 0; k < w.extent; ++k) {
      const long row = s * h.slice * w.extent + h.position(k);
      at.on.scanner(at.q).step(in + row * w.inner, kept + row * wide, h.per, out + row * w.inner, w.extent, mine,
                               h.slice, w.inner);
    }
    at.send(mine, count);
  }
}

}  // namespace detail

/// Runs an instruction that hands on; `memory[b]` is that of buffer b.
template <class T, class Device, class Queue, class Memory>
void run_handed(Device& on, const Queue& q, const handed& h, const instruction& i, const Memory& memory) {
  const auto at = [&](int b) { return static_cast<T*>(memory[b]); };
  const detail::border<T, Device, Queue> border{on, q, h};
  if (h.how.sums)
    detail::run_all_scan<T>(border, at(i.in[0]), h.per > 0 ? at(i.in[1]) : nullptr, at(i.out[0]), at(i.out[1]));
  else detail::run_shift<T>(border, at(i.in[0]), at(i.out[0]), at(i.out[1]), at(i.out[2]));
}

}  // namespace cfp
