#include "arguments.hpp"
#include "commands.hpp"

#include <cfp/core/spell.hpp>

#include <iostream>

namespace program {

namespace {

// What every operator of a graph may be split by: name, operator, rule, sizes of its factors.
void say_rules(const cfp::graph& g) {
  for (const cfp::operation& o : g.operations) {
    std::cout << "rule " << g[o.results[0]].label.view() << ": " << o.op->label << " \"" << cfp::spell(o.r).view()
              << '"';
    for (const long n : o.sizes) std::cout << ' ' << n;
    std::cout << '\n';
  }
}

}  // namespace

// Of all layers, whatever the size: nothing is run.
int analyse(const arguments& a) {
  if (a.batch % a.micro_batches != 0)
    throw cfp::bad_input("--batch " + std::to_string(a.batch) + " cannot be cut into " +
                         std::to_string(a.micro_batches) + " micro-batches of whole sequences");
  const made_model net = make_model(a, a.batch / a.micro_batches, a.layers, 2);
  cfp::session_options o = a.session();
  o.name = a.model + " " + net.sizes;
  cfp::session session(net.forward, o);
  say_model(a, net, ", mesh " + a.mesh);
  if (a.rules) say_rules(net.forward);
  const cfp::structure& known = session.analyse();
  std::cout << known;
  if (is_first()) answer(a, known.json());
  return 0;
}

}  // namespace program
