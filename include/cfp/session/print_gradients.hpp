// What a check of gradients showed, printed for people.
#pragma once

#include <cfp/session/gradient_check.hpp>
#include <cfp/session/texts.hpp>

#include <cmath>
#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace cfp::inline v0_1 {

CFP_INLINE std::vector<std::string> gradient_check::faults() const {
  using detail::printed;
  std::vector<std::string> out;
  if (tensors.empty()) out.push_back("nothing has a gradient: the model has no weights and no inputs of real numbers");
  if (!std::isfinite(loss)) out.push_back("it cannot be judged: the loss is no finite number");
  else if (depends_on_nothing()) out.push_back("it cannot be judged: the loss depends on nothing that was tried");
  for (std::size_t p = 0; p < losses.size(); ++p)
    if (std::isfinite(loss) && loss_apart(p) > most_loss_apart)
      out.push_back(
          printed("the loss is another one under a plan: %.6g under %s, %.6g on one rank, relative difference "
                  "%.1e, at most %.0e; is an operator said to be linear (linearity::all) that is not?",
                  losses[p], plans[p].c_str(), loss, loss_apart(p), most_loss_apart));
  for (const of_tensor& t : tensors)
    if (std::isfinite(loss) && !t.worst.holds())
      out.push_back("the gradient is not the loss's: " + detail::gradient_text(t) + ", derived under " + t.worst.plan);
  if (static_cast<double>(left_out()) > most_left_out * static_cast<double>(tried()))
    out.push_back(
        printed("it cannot be judged: at %.1f%% of what was tried the loss has a kink, at most %.0f%%; "
                "take other weights (seed, filling) or data",
                100 * static_cast<double>(left_out()) / static_cast<double>(tried()), 100 * most_left_out));
  return out;
}

CFP_INLINE std::ostream& operator<<(std::ostream& out, const gradient_check& c) {
  using detail::printed;
  long of = 0;
  for (const gradient_check::of_tensor& t : c.tensors) of += t.elements;
  out << printed("gradients %s: %ld of %ld elements of %zu tensors (seed %lu, differences over %.0e to either side)",
                 c.holds() ? "hold" : "do NOT hold", c.tried(), of, c.tensors.size(),
                 static_cast<unsigned long>(c.seed), c.step);
  if (c.plans.size() > 1) out << printed(", derived under %zu plans", c.plans.size());
  out << '\n';
  for (const std::string& fault : c.faults()) out << fault << '\n';
  if (const gradient_check::of_tensor* const t = c.worst(); t != nullptr && c.holds())
    out << "worst " << detail::gradient_text(*t) << '\n';
  for (const gradient_check::of_tensor& t : c.tensors)
    if (t.largest == 0) out << "the loss does not depend on what was tried of " << t.tensor << '\n';
  if (c.left_out() > 0) out << "left out: " << c.left_out() << " elements where the loss has a kink\n";
  return out;
}

}  // namespace cfp
