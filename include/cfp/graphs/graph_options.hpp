// What a file does not say and its reader must know, and what comes of both.
#pragma once

#include <cfp/graphs/held.hpp>
#include <cfp/model/batch.hpp>
#include <cfp/model/graph.hpp>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct graph_options {
  std::map<std::string, long> dims;  ///< sizes of dimensions that have a symbol in the file
  long batch = 0, sequence = 0;      ///< of those that have none given here: 0: not known
  std::set<std::string> inputs;      ///< parameters of an HLO module that are no weights, by name or number
  std::string output;                ///< what the loss is made of; none: the first output of numbers
};

/// A model that a file holds.
struct read_graph {
  graph forward;
  batch fixed;                                         ///< inputs whose numbers the file tells
  std::vector<std::shared_ptr<given_tensor>> weights;  ///< in the order they are used
  std::vector<std::string> said;                       ///< what was decided, a sentence each
  std::map<std::string, long> used;                    ///< sizes that the file left open, as they were taken
  std::string sizes;                                   ///< "nodes=40 weights=12 batch=4": what tells it from others
};

}  // namespace cfp::graphs
