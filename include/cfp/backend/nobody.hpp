// What a device alone, in the place of a rank, has for a communicator.
#pragma once

#include <stdexcept>

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

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a device alone has nobody for a collective"); }
};

}  // namespace cfp
