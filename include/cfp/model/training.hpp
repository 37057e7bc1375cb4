// How a model is trained.
#pragma once

namespace cfp::inline v0_1 {

/// By AdamW, on one batch per step.
struct training {
  double rate = 3e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double decay = 0.1;  ///< of tensors with two dimensions or more; others do not decay
  long warmup = 0;     ///< steps over which the rate rises
  long steps = 0;      ///< after which the rate has fallen to `last_rate`; 0: it stays
  double last_rate = 0;
  double clip = 0;  ///< most the norm of all gradients together may be; 0: any
  /// A step's batch comes in so many pieces; their gradients are added up. The model is of one piece.
  int micro_batches = 1;
};

}  // namespace cfp
