// Queues of experts: see queue_places. A block takes a group of tokens, some tokens at a time: each thread chooses for
// its token, then for each expert one thread goes through the choices in order and deals out the places.
#pragma once

#include <cfp/backend/cuda/chain/run_chain.hpp>
#include <cfp/op/routing.hpp>
#include <cfp/program/call.hpp>

namespace cfp::inline v0_1::cuda {

template <class T>
struct queue_places_kernel {
  static constexpr int threads = 256;

  chain_tensor gate, place;
  long groups, tokens, experts, choices;

  long blocks() const { return groups; }
  long shared_bytes() const { return (2 * threads + experts) * static_cast<long>(sizeof(std::int32_t)); }

  template <class Thread>
  CFP_DEVICE void operator()(const Thread& t) const {
    auto* chosen = reinterpret_cast<std::int32_t*>(t.shared());
    auto* number = chosen + threads;
    auto* waiting = number + threads;
    const long group = t.block() * tokens * experts;
    for (long i = t.thread(); i < tokens * experts; i += threads) store_one<T>(place, group + i, 0);
    for (long e = t.thread(); e < experts; e += threads) waiting[e] = 0;
    t.sync();
    for (long n = 0; n < choices; ++n)
      for (long first = 0; first < tokens; first += threads) {
        const long token = first + t.thread(), row = group + token * experts;
        if (token < tokens) chosen[t.thread()] = static_cast<std::int32_t>(best(row));
        t.sync();
        const long here = tokens - first < threads ? tokens - first : threads;
        for (long e = t.thread(); e < experts; e += threads)
          for (long i = 0; i < here; ++i)
            if (chosen[i] == e) number[i] = ++waiting[e];
        t.sync();
        if (token < tokens)
          store_one<T>(place, row + chosen[t.thread()],
                       n == 0 ? static_cast<float>(number[t.thread()]) : -static_cast<float>(number[t.thread()]));
      }
  }

 private:
  // Of the experts the token has not chosen yet, the one with the largest gate; of equals the first.
  CFP_DEVICE long best(long row) const {
    long out = -1;
    float most = 0;
    for (long e = 0; e < experts; ++e) {
      if (load_one<T>(place, row + e) != 0.0f) continue;
      const float x = load_one<T>(gate, row + e);
      if (out < 0 || x > most) out = e, most = x;
    }
    return out;
  }
};

template <class T, class Queue>
void run_queue_places(const Queue& q, const call& c) {
  const pattern& dims = c.r().operands[0];
  long size[3] = {1, 1, 1};
  for (int d = 0; d < dims.factors.size(); ++d) size[dims.group[d]] *= c.size[dims.factors[d]];
  chain_tensor gate, place;
  gate.data = c.operand[0].data;
  gate.wide = c.operand[0].wide;
  place.data = c.result[0].data;
  place.wide = c.result[0].wide;
  const queue_places_kernel<T> k{gate, place, size[0], size[1], size[2], static_cast<long>(c.op->scalars[0])};
  detail::launch(q, k, k.shared_bytes());
}

}  // namespace cfp::cuda
