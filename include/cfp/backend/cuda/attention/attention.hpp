// Launches fused attention, forward and backward.
#pragma once

#include <cfp/backend/cuda/attention/attention_forward.hpp>
#include <cfp/backend/cuda/attention/attention_key_gradient.hpp>
#include <cfp/backend/cuda/attention/attention_query_gradient.hpp>
#include <cfp/backend/cuda/attention/attention_rows.hpp>

namespace cfp::inline v0_1::cuda {

namespace detail {
template <class Queue, class Kernel>
void launch_attention(const Queue& queue, const Kernel& k) {
  if (const long blocks = k.blocks(); blocks > 0) queue.launch(k, blocks, Kernel::shared_bytes);
}
template <class T, int D, class Queue>
void run_attention_gradients(const Queue& queue, const attention_view& v) {
  constexpr int rows = D > 64 ? 16 : 32,
                queries = D > 64 ? 64 : 32;  // two sums of D numbers to a row: as many as registers hold
  launch_attention(queue, attention_key_gradient<T, D, 128, queries, rows>{v});
  launch_attention(queue, attention_query_gradient<T, D>{v});
}
}  // namespace detail

/// out, max and sum of q, k and v; a call that attention_fits. A queue has `launch(kernel, blocks, shared_bytes)
/// const`, in order.
template <class T, class Queue>
void run_attention_forward(const Queue& queue, const attention_call& c) {
  const attention_view v(c);
  if (c.depth <= 64) detail::launch_attention(queue, attention_forward<T, 64>{v});
  else if (c.depth <= 96) detail::launch_attention(queue, attention_forward<T, 96>{v});
  else detail::launch_attention(queue, attention_forward<T, 128>{v});
}

/// dq, dk and dv of d_out and of what forward took and gave. The same bits every time.
template <class T, class Queue>
void run_attention_backward(const Queue& queue, const attention_call& c) {
  const attention_view v(c);
  detail::launch_attention(queue, attention_rows<T>{v});
  if (c.depth <= 64) detail::run_attention_gradients<T, 64>(queue, v);
  else if (c.depth <= 96) detail::run_attention_gradients<T, 96>(queue, v);
  else detail::run_attention_gradients<T, 128>(queue, v);
}

}  // namespace cfp::cuda
