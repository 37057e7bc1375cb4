// The rows of a report: decisions in their blocks and segments, equal layers once.
#pragma once

#include <cfp/block/parallel_blocks.hpp>
#include <cfp/export/report/report_view.hpp>
#include <cfp/plan/segment_times.hpp>
#include <cfp/session/lines.hpp>
#include <cfp/session/texts.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cfp::inline v0_1::detail {

/// Neighbouring segments that are equal and choose alike are one, and so are their decisions.
class report_rows {
 public:
  /// All must outlive this. `stage_of`: of a forward operation.
  report_rows(const graph& g, const decision_graph& d, const std::vector<int>& choices,
              const std::function<int(int)>& stage_of)
      : g_(g), d_(d), choices_(choices), blocks_(parallel_blocks(g)), parts_(cfp::segments(g, blocks_)),
        shares_(blocks_, parts_, d), row_of_(d.nodes.size(), -1) {
    std::vector<std::vector<int>> nodes(parts_.segments.size());
    for (std::size_t n = 0; n < d.nodes.size(); ++n)
      nodes[static_cast<std::size_t>(shares_.of(static_cast<int>(n)))].push_back(static_cast<int>(n));
    std::vector<int> last;
    for (std::size_t s = 0; s < nodes.size(); ++s) {
      std::vector<int> key = key_of(s, nodes[s], stage_of);
      if (last != key) begin(s, key[1]);
      last = std::move(key);
      add(s, nodes[s]);
    }
    name();
  }

  const segmentation& parts() const { return parts_; }
  const segment_times& shares() const { return shares_; }
  int row_of(std::size_t node) const { return row_of_[node]; }
  /// The first decision of a row.
  std::size_t first(std::size_t row) const { return first_[row]; }

  std::vector<report_view::segment> segments;
  std::vector<report_view::decision> decisions;

 private:
  using row_key = std::tuple<int, std::string, std::string, int>;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const segment& part(std::size_t s) const { return parts_.segments[s]; }
  std::vector<int> key_of(std::size_t s, const std::vector<int>& nodes, const std::function<int(int)>& stage_of) const {
    const block& first = blocks_.blocks[at(part(s).first)];
    std::vector<int> out{part(s).kind, stage_of(blocks_.parts[at(first.body)].forward.front())};
    for (const int n : nodes)
      if (d_.nodes[at(n)].kind == decision::strategy_of_part) out.push_back(choices_[at(n)]);
    return out;
  }
  void begin(std::size_t s, int stage) {
    segments.push_back({"", 0, part(s).kind, stage});
    for (int b = 0; b < part(s).count; ++b) {
      segments.back().blocks.push_back({blocks_.blocks[at(part(s).first + b)].label});
      block_names_.push_back(of_layers(segments.back().blocks.back().label));
    }
    rows_.clear();
  }
  static alike_lines of_layers(const std::string& label) {
    alike_lines out;
    out.first.decision = label, out.layer = layer_of(label);
    return out;
  }
  void add_layer(alike_lines& lines, const std::string& label, long times) const {
    const auto [from, length] = layer_of(label);
    if (length == 0) return;
    lines.layers.push_back(std::stol(label.substr(from, length)));
    lines.times.push_back(times);
  }

  void add(std::size_t s, const std::vector<int>& nodes) {
    report_view::segment& to = segments.back();
    ++to.count;
    const std::size_t first_block = block_names_.size() - to.blocks.size();
    for (std::size_t b = 0; b < to.blocks.size(); ++b)
      add_layer(block_names_[first_block + b], blocks_.blocks[at(part(s).first) + b].label, 1);
    std::map<row_key, int> seen;
    for (const int n : nodes) {
      const decision& node = d_.nodes[at(n)];
      const std::string label = node.kind == decision::strategy_of_part ? node.label : decision_label(node);
      const auto [from, length] = layer_of(label);
      row_key key{node.kind, length > 0 ? std::string(label).replace(from, length, "*") : label,
                  node.names[at(choices_[at(n)])], 0};
      std::get<3>(key) = seen[key]++;
      const auto [found, fresh] = rows_.try_emplace(key, static_cast<int>(decisions.size()));
      if (fresh) add_row(n, label);
      const int row = row_of_[at(n)] = found->second;
      ++decisions[at(row)].count;
      add_layer(names_[at(row)], label, times_of(node, g_));
    }
  }
  void add_row(int n, const std::string& label) {
    static constexpr const char* kinds[] = {"part", "rest", "forms", "placement", "all weights"};
    const decision& node = d_.nodes[at(n)];
    report_view::segment& to = segments.back();
    const int row = static_cast<int>(decisions.size());
    decisions.push_back({label, kinds[node.kind], node.names[at(choices_[at(n)])], 0, static_cast<long>(node.choices()),
                         static_cast<int>(segments.size()) - 1});
    names_.push_back(of_layers(label));
    first_.push_back(at(n));
    if (node.kind != decision::strategy_of_part) return to.shared.push_back(row);
    const int b = blocks_.parts[at(node.index)].block - part(at(shares_.of(n))).first;
    to.blocks[at(b)].decisions.push_back(row);
  }
  // Labels say which layers they are of.
  void name() {
    for (std::size_t r = 0; r < decisions.size(); ++r) decisions[r].label = names_[r].label();
    std::size_t next = 0;
    for (report_view::segment& s : segments) {
      for (report_view::block& b : s.blocks) b.label = block_names_[next++].label();
      const std::string& first = s.blocks.front().label;
      const auto [from, length] = block_names_[next - s.blocks.size()].layer;
      s.label = length == 0 ? first : first.substr(0, first.find('.', from));
      if (length == 0 && s.blocks.size() > 1) s.label += " to " + s.blocks.back().label;
    }
  }

  const graph& g_;
  const decision_graph& d_;
  const std::vector<int>& choices_;
  const block_structure blocks_;
  const segmentation parts_;
  const segment_times shares_;
  std::vector<int> row_of_;
  std::vector<std::size_t> first_;
  std::map<row_key, int> rows_;  // of the segments that are folded now
  std::vector<alike_lines> names_, block_names_;
};

}  // namespace cfp::inline v0_1::detail
