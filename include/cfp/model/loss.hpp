// What a model that predicts indices is trained by.
#pragma once

#include <cfp/model/trace.hpp>
#include <cfp/op/softmax.hpp>

namespace cfp::inline v0_1 {

/// The mean cross entropy of logits [..., vocabulary] and targets [...]. Where the targets' input may hold
/// `ignored_target` (`net.input("targets", dims, element::index, targets_below(vocabulary))`), the mean is over the
/// others, and 0 where there is none. It is the mean of a pass: with micro-batches a step's loss is the mean of its
/// passes' means, each counted once however many targets it has.
constexpr tensor mean_cross_entropy(tensor logits, tensor targets) {
  const tensor max = logits_max(logits), sum = logits_sum(logits, max);
  const value given = logits.net->recorded[targets.id];
  if (given.fill.may_be_ignored) {
    const tensor all = cross_entropy(logits, targets, max, sum, 1.0), count = counted_targets(sum, targets);
    return mean_of(all, count);
  }
  double rows = 1;
  for (long n : given.shape) rows *= static_cast<double>(n);
  return cross_entropy(logits, targets, max, sum, 1.0 / rows);
}

}  // namespace cfp
