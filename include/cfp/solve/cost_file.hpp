// Cost graphs as JSON: written so that they read back the same, read with every mistake named where it stands.
#pragma once

#include <cfp/file/json_reader.hpp>
#include <cfp/solve/cost_graph.hpp>

namespace cfp::inline v0_1 {

inline constexpr int cost_file_version = 1;

namespace detail {

class cost_reader : json_reader<invalid_cost_graph> {
 public:
  using json_reader::json_reader;

  cost_graph run() {
    const json all = parsed();
    only(all, "the file", {"version", "nodes", "edges", "memory_limit"}, "cost graphs");
    if (all.contains("version")) check_version(all, "the file", cost_file_version);
    cost_graph out;
    const json& nodes = array(member(all, "the file", "nodes"), "nodes");
    for (std::size_t n = 0; n < nodes.size(); ++n)
      out.nodes.push_back(node(nodes[n], "nodes[" + std::to_string(n) + "]"));
    if (const auto edges = all.find("edges"); edges != all.end()) {
      array(*edges, "edges");
      for (std::size_t e = 0; e < edges->size(); ++e)
        out.edges.push_back(edge((*edges)[e], "edges[" + std::to_string(e) + "]", out.nodes));
    }
    if (const auto limit = all.find("memory_limit"); limit != all.end() && !limit->is_null())
      out.memory_limit = bytes(*limit, "memory_limit");
    try {
      validate(out);
    } catch (const invalid_cost_graph& e) {
      refuse(e.what());
    }
    return out;
  }

 private:
  [[nodiscard]] std::int64_t bytes(const json& value, const std::string& owner) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())))
      refuse(owner + " must be a whole number of bytes, got " + shown(value));
    return value.get<std::int64_t>();
  }
  [[nodiscard]] int index(const json& value, const std::string& owner, std::size_t nodes) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= nodes)
      refuse(owner + " must be the index of one of " + std::to_string(nodes) + " nodes, got " + shown(value));
    return value.get<int>();
  }
  void times(const json& value, const std::string& owner, shared_table& into) const {
    array(value, owner);
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!value[i].is_number() && !value[i].is_null())
        refuse(owner + "[" + std::to_string(i) + "] must be a number, or null for infinite, got " + shown(value[i]));
      into.push_back(value[i].is_null() ? std::numeric_limits<double>::infinity() : value[i].get<double>());
    }
  }
  [[nodiscard]] std::vector<std::int64_t> memory(const json& value, const std::string& owner) const {
    array(value, owner);
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < value.size(); ++i)
      out.push_back(bytes(value[i], owner + "[" + std::to_string(i) + "]"));
    return out;
  }

  cost_node node(const json& value, const std::string& owner) const {
    only(value, owner, {"name", "time", "memory", "transient"}, "cost graphs");
    cost_node out;
    if (const auto at = value.find("name"); at != value.end()) out.name = text(*at, owner + ".name");
    times(member(value, owner, "time"), owner + ".time", out.time);
    if (const auto at = value.find("memory"); at != value.end()) out.memory = memory(*at, owner + ".memory");
    else out.memory.assign(out.time.size(), 0);
    if (const auto at = value.find("transient"); at != value.end()) out.transient = memory(*at, owner + ".transient");
    return out;
  }

  cost_edge edge(const json& value, const std::string& owner, const std::vector<cost_node>& nodes) const {
    only(value, owner, {"from", "to", "time"}, "cost graphs");
    cost_edge out;
    out.from = index(member(value, owner, "from"), owner + ".from", nodes.size());
    out.to = index(member(value, owner, "to"), owner + ".to", nodes.size());
    const json& rows = array(member(value, owner, "time"), owner + ".time");
    const std::size_t columns = nodes[static_cast<std::size_t>(out.to)].time.size();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string row = owner + ".time[" + std::to_string(r) + "]";
      times(rows[r], row, out.time);
      if (rows[r].size() != columns)
        refuse(row + " must have an entry for each of " + std::to_string(columns) + " choices, got " +
               std::to_string(rows[r].size()));
    }
    return out;
  }
};

}  // namespace detail

/// A cost graph from JSON text:
/// `{"version": 1, "nodes": [{"name": "", "time": [..], "memory": [..], "transient": [..]}], "edges": [{"from": 0,
/// "to": 1, "time": [[..]]}], "memory_limit": null}` where null stands for an infinite time, memory is in bytes, and
/// `version`, `name`, `memory`, `transient`, `edges` and `memory_limit` may be left out. Throws `invalid_cost_graph`,
/// whose sentence begins with `where` and names the place.
inline cost_graph read_costs(std::string_view text, std::string where = "cost graph") {
  return detail::cost_reader(text, std::move(where)).run();
}

/// The same the other way; numbers are written so that they read back to the last bit.
inline nlohmann::ordered_json to_json(const cost_graph& graph) {
  using json = nlohmann::ordered_json;
  const auto times = [](auto begin, auto end) {
    json out = json::array();
    for (; begin != end; ++begin)
      out.push_back(*begin < std::numeric_limits<double>::infinity() ? json(*begin) : json());
    return out;
  };
  json out{
      {"version", cost_file_version}, {"nodes", json::array()}, {"edges", json::array()}, {"memory_limit", nullptr}};
  for (const cost_node& n : graph.nodes) {
    json node{{"name", n.name}, {"time", times(n.time.begin(), n.time.end())}, {"memory", n.memory}};
    if (!n.transient.empty()) node["transient"] = n.transient;
    out["nodes"].push_back(std::move(node));
  }
  for (const cost_edge& e : graph.edges) {
    json rows = json::array();
    const auto columns = static_cast<std::ptrdiff_t>(graph.nodes[static_cast<std::size_t>(e.to)].time.size());
    for (auto row = e.time.begin(); row != e.time.end(); row += columns) rows.push_back(times(row, row + columns));
    out["edges"].push_back({{"from", e.from}, {"to", e.to}, {"time", std::move(rows)}});
  }
  if (graph.memory_limit) out["memory_limit"] = *graph.memory_limit;
  return out;
}

}  // namespace cfp
