#include "arguments.hpp"
#include "commands.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace program {

int train(const arguments& a) {
  prepared p = prepare(a);
  introduce(p, a);
  const cfp::found_plan& found = plan_and_print(p, a);
  nlohmann::ordered_json summary = summary_of(p, a, found);
  save(p, a);
  const long every = std::max(1l, a.steps / 20);
  const auto tell = [&](const cfp::step_report& r) {
    if (is_first() && (r.step % every == 0 || r.step == 1))
      std::cout << "step " << r.step << ": loss " << r.loss << ", " << r.ms << " ms\n" << std::flush;
    return true;
  };
  cfp::training_report report;
  long left = a.steps;
  do {
    const long some = a.save_every > 0 ? std::min(a.save_every, left) : left;
    report.append(p.session.train(p.text, some, tell));
    left -= some;
    if (report.lost_at() > 0) break;  // what was saved before is worth more
    save_trained(p, a);
  } while (left > 0);
  std::cout << report;
  summary["training"] = nlohmann::ordered_json::parse(report.json());
  save_summary(p, a, summary.dump(1));
  if (report.lost_at() == 0) return 0;
  for (const auto& [option, path] : {std::pair("--save-state ", &a.save_state), {"--save-weights ", &a.save_weights}})
    if (is_first() && !path->empty())
      std::cerr << option << *path << ": not written after step " << report.lost_at()
                << ", whose loss is no finite number\n";
  return 1;
}

}  // namespace program
