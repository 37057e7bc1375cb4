// Pieces of what is printed: sizes, collectives, decisions with equal layers once.
#pragma once

#include <cfp/backend/number.hpp>
#include <cfp/model/training.hpp>
#include <cfp/session/values.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <numeric>
#include <ostream>

namespace cfp::inline v0_1 {

namespace detail {

[[gnu::format(printf, 1, 2)]] inline std::string printed(const char* format, ...) {
  va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  const int n = std::vsnprintf(nullptr, 0, format, values);
  va_end(values);
  std::string out(static_cast<std::size_t>(n), ' ');
  std::vsnprintf(out.data(), out.size() + 1, format, again);
  va_end(again);
  return out;
}

/// What a training is beside the model: where it is not as usual. Plans, tables and headers bear it in their name.
inline std::string said_of(const training& how, number type) {
  std::string out;
  if (how.micro_batches > 1) out += " micro_batches=" + std::to_string(how.micro_batches);
  if (how.optimizer != optimizer_form::adamw_float32) out.append(" ").append(name_of(how.optimizer));
  if (how.gradients != compression::none) out.append(" gradients=").append(name_of(how.gradients));
  if (type != number::float32) out.append(" ").append(name_of(type));
  return out;
}

inline double mib(long bytes) { return static_cast<double>(bytes) / 1048576; }
inline double gib(long bytes) { return static_cast<double>(bytes) / 1073741824; }
/// Of a device.
inline std::string memory_text(double gib) {
  return gib < 1 ? printed("%.1f MiB", 1024 * gib) : printed("%.1f GiB", gib);
}

// "2x4", or the axes' own names where somebody gave them.
inline std::string short_mesh(const std::string& mesh) {
  std::string out;
  bool own = false;
  for (const char* axis : {"x=", "y=", "z="}) {
    const std::size_t at = mesh.find(axis);
    if (at == std::string::npos) continue;
    out += (out.empty() ? "" : "x") + mesh.substr(at + 2, mesh.find(',', at) - at - 2);
  }
  for (std::size_t at = 0; (at = mesh.find('=', at)) != std::string::npos; ++at)
    own = own || at == 0 || mesh[at - 1] < 'x' || mesh[at - 1] > 'z' || (at > 1 && mesh[at - 2] != ',');
  return own ? mesh : out;
}

/// "1.50 MiB: 2 ar, ag", or nothing.
inline std::string sent_text(const collective_count& n) {
  static constexpr std::array brief{"ar", "ag", "rs", "aa", "bc", "shift", "scan", "send"};
  static_assert(brief.size() == collective_names.size());
  std::string out;
  for (std::size_t k = 0; k < n.calls.size(); ++k)
    if (n.calls[k] > 0)
      out.append(out.empty() ? "" : ", ")
          .append(n.calls[k] > 1 ? std::to_string(n.calls[k]) + " " : "")
          .append(brief[k]);
  return out.empty() ? out : printed("%.2f MiB: ", mib(n.total_bytes())) + out;
}

/// The first number between dots of a label: the layer it is of. "h.3.attn" -> 2, 1
inline std::pair<std::size_t, std::size_t> layer_of(const std::string& label) {
  for (std::size_t at = 0; at < label.size();) {
    std::size_t end = at;
    while (end < label.size() && std::isdigit(static_cast<unsigned char>(label[end]))) ++end;
    if (end > at && (at == 0 || label[at - 1] == '.') && end < label.size() && label[end] == '.') return {at, end - at};
    at = end + 1;
  }
  return {0, 0};
}

/// Decisions of layers that are alike, once.
struct alike_lines {
  plan_line first;
  std::vector<long> layers, times;  // where each begins, and how many it stands for
  std::pair<std::size_t, std::size_t> layer;

  long count() const { return std::accumulate(times.begin(), times.end(), 0L); }

  std::string label() const {
    if (count() < 2) return first.decision;
    std::vector<std::string> ranges;
    for (std::size_t i = 0; i < layers.size();) {
      std::size_t j = i;
      while (j + 1 < layers.size() && layers[j + 1] == layers[j] + times[j]) ++j;
      const long last = layers[j] + times[j] - 1;
      ranges.push_back(std::to_string(layers[i]) + (last > layers[i] ? "-" + std::to_string(last) : ""));
      i = j + 1;
    }
    constexpr std::size_t most = 4;  // ranges that are shown: of more the first, the second and the last
    std::string numbers = ranges.front();
    for (std::size_t i = 1; i < ranges.size(); ++i)
      if (ranges.size() <= most || i == 1 || i + 1 == ranges.size()) numbers += "," + ranges[i];
      else if (i == 2) numbers += ",..";
    std::string out = first.decision;
    return out.replace(layer.first, layer.second, numbers);
  }
};

inline std::vector<alike_lines> alike(const std::vector<plan_line>& lines) {
  std::vector<alike_lines> out;
  std::map<std::string, std::size_t> at;
  std::map<std::string, int> seen;  // a layer may have several decisions of one name
  for (const plan_line& l : lines) {
    const auto [from, length] = layer_of(l.decision);
    std::string key = l.decision;
    if (length > 0) key.replace(from, length, "*");
    key += "|" + std::to_string(seen[l.decision]++) + "|" + l.choice + "|" + sent_text(l.sent);
    const auto [found, fresh] = at.try_emplace(key, out.size());
    if (fresh) out.push_back({l, {}, {}, {from, length}});
    if (length == 0) continue;
    out[found->second].layers.push_back(std::stol(l.decision.substr(from, length)));
    out[found->second].times.push_back(l.times);
  }
  return out;
}

/// What the odd words of some choices mean.
inline std::string legend(const std::vector<plan_line>& lines) {
  const auto any = [&](const char* what) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const plan_line& l) { return l.choice.find(what) != std::string::npos; });
  };
  std::string out = "a choice says what each mesh axis splits; - is nothing";
  if (any(">")) out += ";\na>b: operands hold pieces of a, results pieces of b";
  if (any("/scattered")) out += ";\n/scattered: weights rest in pieces and are gathered";
  if (any("/regathered")) out += ";\n/regathered: the same, and gathered again for backward";
  if (any("partial")) out += ";\npartial: results stay parts of a sum";
  if (any("recomputed"))
    out +=
        ";\nrecomputed: for backward, and not kept: all that a part makes, what is cheap of it or inside it, or its "
        "inputs";
  if (any(", the rest on the host")) out += ";\nthe rest on the host: of what the part makes, until backward reads it";
  if (any(", border on the host")) out += ";\nborder on the host: what it reads of other layers, until backward does";
  if (any("state on the host")) out += ";\nstate on the host: of the optimizer, brought to the device for its update";
  if (any(", weights and state")) out += ";\nweights on the host: in 32 bits, brought whenever something reads them";
  const bool sends =
      std::any_of(lines.begin(), lines.end(), [](const plan_line& l) { return l.sent.total_bytes() > 0; });
  if (sends) out += ";\nar, ag, rs, aa: all-reduce, all-gather, reduce-scatter, all-to-all";
  return out;
}

/// A line for each decision; what takes no time and sends nothing decides nothing.
inline std::ostream& print_lines(std::ostream& out, const std::vector<plan_line>& lines) {
  std::vector<plan_line> shown;
  for (const plan_line& l : lines)
    if (l.of_part || l.ms >= 0.005 || l.sent.total_bytes() > 0) shown.push_back(l);
  const bool timed = std::any_of(lines.begin(), lines.end(), [](const plan_line& l) { return l.ms > 0; });
  out << legend(shown) << "\n\n"
      << printed("%-40s %-26s %8s  %s\n", "decision", "choice", timed ? "ms" : "", "each rank sends");
  for (const alike_lines& l : alike(shown)) {
    std::string label = l.label();
    if (l.count() > 1) label += printed(" (x%ld)", l.count());
    const std::string ms = l.first.ms > 0 ? printed("%.2f", l.first.ms) : "";
    const std::string choice = l.first.choice, sent = sent_text(l.first.sent);
    out << printed("%-40s %-26s", label.c_str(), choice.c_str());
    if (label.size() > 40 || choice.size() > 26 || sent.size() > 42)  // what is long goes over two lines
      out << printed("\n%-67s", "");
    out << printed(" %8s  %s\n", ms.c_str(), sent.c_str());
  }
  if (const std::size_t left = lines.size() - shown.size(); left > 0)
    out << left << " decisions that " << (timed ? "take no time and " : "") << "send nothing are left out\n";
  return out;
}

inline std::ostream& print_memory(std::ostream& out, const memory_split& m) {
  out << printed(
      "memory of a rank, MiB: weights %.1f, optimizer %.1f, kept for backward %.1f, transient (gradients too) %.1f\n",
      mib(m.weight_bytes), mib(m.state_bytes), mib(m.kept_bytes), mib(m.transient_bytes));
  if (m.host_state_bytes + m.host_kept_bytes > 0)
    out << printed("on the host, MiB: weights and optimizer %.1f, kept for backward %.1f\n", mib(m.host_state_bytes),
                   mib(m.host_kept_bytes));
  return out;
}

/// "width=3 hidden=0"
inline std::string place_text(const std::vector<std::pair<std::string, long>>& place) {
  std::string out;
  for (const auto& [dimension, at] : place)
    out.append(out.empty() ? "" : " ").append(dimension).append("=").append(std::to_string(at));
  return out;
}

/// "up[width=3 hidden=0]: derived 1.5, by differences 0.75, relative difference 1.0e+00, at most 1.0e-07"
inline std::string gradient_text(const gradient_check::of_tensor& t) {
  return printed("%s[%s]: derived %.6g, by differences %.6g, relative difference %.1e, at most %.1e", t.tensor.c_str(),
                 place_text(t.worst.place).c_str(), t.worst.derived, t.worst.by_differences, t.relative(),
                 t.relative_bound());
}

inline nlohmann::ordered_json count_json(const collective_count& n) {
  nlohmann::ordered_json j;
  for (std::size_t k = 0; k < n.calls.size(); ++k)
    if (k < 4 || n.calls[k] > 0) j[std::string(collective_names[k])] = n.calls[k];
  return j;
}

}  // namespace detail

}  // namespace cfp
