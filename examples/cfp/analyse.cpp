#include "arguments.hpp"
#include "commands.hpp"

#include <iostream>

namespace program {

// Of all layers, whatever the size: nothing is run.
int analyse(const arguments& a) {
  if (a.batch % a.micro_batches != 0)
    throw cfp::bad_input("--batch " + std::to_string(a.batch) + " cannot be cut into " +
                         std::to_string(a.micro_batches) + " micro-batches of whole sequences");
  const cfp::families::built_model net = make_model(a, a.batch / a.micro_batches, a.layers, 2);
  cfp::session_options o = a.session();
  o.name = a.model + " " + net.sizes;
  cfp::session session(net.forward, o);
  std::cout << a.model << ": " << net.sizes << ", mesh " << a.mesh << '\n';
  if (net.vocabulary != net.vocabulary_given)
    std::cout << "vocabulary " << net.vocabulary_given << " padded to " << net.vocabulary << '\n';
  const cfp::structure& known = session.analyse();
  std::cout << known;
  if (is_first()) answer(a, known.json());
  return 0;
}

}  // namespace program
