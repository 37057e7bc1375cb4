// Plans people use today, as named wishes: per part the first wished-for strategy it has; all else is solved.
#pragma once

#include <cfp/plan/realise.hpp>

namespace cfp::inline v0_1 {

/// What a named plan wishes each mesh axis to split, best first. "-" is replicate.
struct named_plan {
  std::string name;
  std::vector<std::string> wishes;  ///< per axis: names of dimensions, separated by blanks
  schedule order{};
};

/// Of the partitions a shared weight may rest in, the one split over most axes.
inline std::size_t most_split(const decision& d) {
  const auto axes = [](const std::string& text) { return std::count(text.begin(), text.end(), ':'); };
  return static_cast<std::size_t>(
      std::max_element(d.names.begin(), d.names.end(),
                       [&](const std::string& a, const std::string& b) { return axes(a) < axes(b); }) -
      d.names.begin());
}

/// Choices of the parts that follow the wishes; -1 for what remains to be solved.
inline std::vector<int> follow(const named_plan& p, const decision_graph& d, const mesh_shape& mesh) {
  std::vector<int> out(d.nodes.size(), -1);
  bool wishless = true, scattered = true;
  for (const std::string& w : p.wishes) {
    wishless = wishless && w.empty();
    scattered = scattered && w.find('/') != std::string::npos;
  }
  for (std::size_t n = 0; n < d.nodes.size(); ++n) {
    const decision& node = d.nodes[n];
    if (node.kind != decision::strategy_of_part) {  // without wishes nothing is split, what parts share neither
      const auto whole = std::find(node.names.begin(), node.names.end(), "replicated");
      if (wishless && whole != node.names.end()) out[n] = static_cast<int>(whole - node.names.begin());
      if (scattered && node.kind == decision::rest_of_weight) out[n] = static_cast<int>(most_split(node));
      continue;
    }
    std::vector<std::string> texts{""};  // all combinations of wishes, best first
    for (int a = 0; a < mesh.rank(); ++a) {
      std::vector<std::string> longer;
      for (const std::string& t : texts) {
        std::string wishes = p.wishes[static_cast<std::size_t>(a)] + " -";
        for (std::size_t at = 0; at < wishes.size();) {
          const std::size_t end = std::min(wishes.find(' ', at), wishes.size());
          std::string next = t;
          if (a) next += ' ';
          next.append(mesh.axes[a].label.view()).append(1, '=').append(wishes, at, end - at);
          longer.push_back(next);
          at = end + 1;
        }
      }
      texts = std::move(longer);
    }
    for (const std::string& t : texts) {
      const auto at = std::find(node.names.begin(), node.names.end(), t);
      if (at == node.names.end()) continue;
      out[n] = static_cast<int>(at - node.names.begin());
      break;
    }
  }
  return out;
}

}  // namespace cfp
