// What indices select, with the rule of a lookup.
#pragma once

#include <cfp/graphs/primitives.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace cfp::inline v0_1::graphs {

struct selections : primitives {
  /// Rows of a table along one of its dimensions. False where the indices are computed: nobody has an operator for
  /// that.
  bool lookup(const held& table, std::size_t axis, const held& at, held& out) {
    std::vector<int> rows, places, all;
    const int rank = static_cast<int>(table.shape.size());
    for (int d = 0; d < rank; ++d) rows.push_back(d);
    for (std::size_t d = 0; d < at.shape.size(); ++d) places.push_back(rank + static_cast<int>(d));
    all = rows;
    const auto place = all.begin() + static_cast<std::ptrdiff_t>(axis);
    all.insert(all.erase(place), places.begin(), places.end());
    return selected(table, rows, static_cast<int>(axis), at, places, all, out);
  }
  /// What indices select along the dimension `along`: `rows`, `places` and `all` number the dimensions of the table, of
  /// the indices and of the result. False where the indices are computed.
  bool selected(const held& table, const std::vector<int>& rows, int along, const held& at,
                const std::vector<int>& places, const std::vector<int>& all, held& out) {
    long size = 1;
    for (std::size_t d = 0; d < rows.size(); ++d)
      if (rows[d] == along) size = table.shape[d];
    const int index = size > 1 && !table.is_whole ? build.indices(at, size) : -1;
    if (index < 0) return false;
    rule_sketch s = at.view.parts();
    const int id = build.numbers(table);
    std::map<int, std::vector<int>> lists;
    std::map<int, long> sizes;
    for (std::size_t d = 0, own = 0; d < places.size(); ++d) {
      sizes[places[d]] = at.shape[d];
      if (at.shape[d] != 1) lists[places[d]] = at.view.seen()[own++];
    }
    s.operands = {{}, at.view.stored()};
    for (std::size_t d = 0, own = 0; d < rows.size(); ++d) {
      if (sizes[rows[d]] < 2) sizes[rows[d]] = table.shape[d];
      if (table.shape[d] == 1) continue;
      const std::string called(build.g[id].dims[static_cast<int>(own++)].view());
      std::vector<int>& list = lists[rows[d]];
      if (list.empty()) list = {s.add(called, table.shape[d])};
      if (s.size_of(list) != table.shape[d]) throw bad_input("indices do not fit what they select from");
      s.operands[0].push_back(list);
      if (rows[d] == along) s[list[0]].one_hot = true;
    }
    s.results.push_back({});
    std::vector<long> shape;
    for (const int d : all) {
      shape.push_back(sizes[d]);
      if (lists.count(d) > 0 && !lists[d].empty()) s.results[0].push_back(lists[d]);
    }
    out = build.computed(build.record(info<lookup_t>, s, {id, index}).front(), shape);
    return true;
  }
};

}  // namespace cfp::graphs
