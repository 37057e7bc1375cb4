// What a device alone, in the place of a rank, has for a communicator.
#pragma once

#include <cfp/core/bad_input.hpp>

namespace cfp::inline v0_1 {

struct nobody {
  template <class... Arguments>
  void all_reduce(Arguments...) const {
    refuse();
  }
  template <class... Arguments>
  void all_gather(Arguments...) const {
    refuse();
  }
  template <class... Arguments>
  void reduce_scatter(Arguments...) const {
    refuse();
  }
  template <class... Arguments>
  void all_to_all(Arguments...) const {
    refuse();
  }
  template <class... Arguments>
  void send(Arguments...) const {
    refuse();
  }
  template <class... Arguments>
  void receive(Arguments...) const {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() { throw bad_input("a device alone has nobody for a collective"); }
};

}  // namespace cfp
