// Must not compile: a model calls an operator that scans and does not say what it hands on.
// expected-error {{an operator that scans says what one position leaves to the next}}
// expected-words {{scans; what is handed on must be known to run it: derive it from cfp::scan_op, or mark the factor `whole`}}
#include <cfp/model/trace.hpp>
#include <cfp/op/scan.hpp>
inline constexpr struct running_sum_t : cfp::op<"b s -> b s; scan s", running_sum_t> {
  template <class T>
  CFP_HOST_DEVICE static T apply(T x) {
    return x;
  }
} running_sum;
inline constexpr struct carried_t : cfp::scan_op<"b s d -> b s d; scan s", carried_t, 1, false, true> {} carried;
int main() {
  cfp::model net;
  carried(net.weight("y", {{"b", 2}, {"s", 4}, {"d", 3}}, {0.0, 1.0}));
#ifndef CFP_CONTROL
  running_sum(net.weight("x", {{"b", 2}, {"s", 4}}, {0.0, 1.0}));
#endif
}
