// What an engine asks of the device of a rank.
#pragma once

#include <cfp/backend/places.hpp>

#include <concepts>
#include <functional>

namespace cfp::inline v0_1 {

/// The device of a rank.
template <class D>
concept device = requires(D& d, const places& where, const instruction& i, const typename D::queue& q,
                          const std::function<void(const typename D::queue&)>& work,
                          const std::function<void()>& issue) {
  typename D::number;  ///< what numbers are stored as
  typename D::memory;  ///< see host::memory; made from the device
  {
    D::immediate
    } -> std::convertible_to<bool>;  ///< whether what is put into the main queue has run when `put` returns
  { d.rank() } -> std::convertible_to<int>;
  { d.main() } -> std::convertible_to<typename D::queue>;   ///< queues run what they are given in order
  { d.side(0) } -> std::convertible_to<typename D::queue>;  ///< of the streams beside, by number
  d.put(q, work);         // the queue runs work(queue); what is put must stay where it is
  d.mark(0, q);           // mark n is where the queue is now
  d.meet(0, q);           // the queue goes on once the other has come to mark n
  d.mover(q);             // see host_mover
  d.coder(q);             // see host::coder
  d.scanner(q);           // see host::scanner
  d.among(1u, q);         // the communicator along a set of mesh axes, a bit each, its calls in that queue
  d.pair(0, 1, true, q);  // that with the rank elsewhere on an axis alone
  d.set(1l);              // the step, which kernels read
  d.set_pass(0, true);    // the same of the pass, and whether sums over passes begin with it
  d.record(issue);        // what is issued once, to be replayed; false if it cannot
  d.wait();               // for all queues, with a deadline
  d.fail("why");          // before an exception leaves: no rank, nor a queue of this one, waits for this rank any more
  d.tick(0);              // notes when the main queue comes here
  { d.between(0, 1) } -> std::convertible_to<double>;                    ///< milliseconds from one tick to another
  { d.make_ready(where, i) } -> std::same_as<ready<typename D::queue>>;  ///< what computes or narrows
};

}  // namespace cfp
