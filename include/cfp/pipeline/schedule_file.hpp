// Schedules as files: JSON, in which a slot is a word such as "f0.3", forward of stage 0 and micro-batch 3.
#pragma once

#include <cfp/core/text.hpp>
#include <cfp/file/json_reader.hpp>
#include <cfp/file/whole_file.hpp>
#include <cfp/pipeline/pipeline_schedule.hpp>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace cfp::inline v0_1 {

namespace detail {

inline constexpr std::string_view slot_letters = "fbiwu";  // as slot::kind_t: backward for inputs is i, for weights w
inline constexpr std::array<const char*, 3> read_names{"stashed", "delayed", "newest"};  // as weights_read

class schedule_reader : json_reader<bad_input> {
 public:
  using json_reader::json_reader;

  pipeline_schedule read() const {
    const json all = parsed();
    only(all, "a schedule", {"version", "name", "stages", "micro_batches", "slices", "batch", "reads", "ranks"},
         "schedules");
    check_version(all, "a schedule", 1);
    pipeline_schedule out;
    out.name = text(member(all, "a schedule", "name"), "name");
    if (out.name.empty() || out.name.size() > 60 || !is_name(out.name))
      refuse("name must be letters, digits and _, 1 to 60 of them, is '" + out.name.substr(0, 100) + "'");
    out.stages = count(all, "stages"), out.micro_batches = count(all, "micro_batches"), out.batch = count(all, "batch");
    if (all.contains("slices")) out.slices = count(all, "slices");
    const std::string reads = text(member(all, "a schedule", "reads"), "reads");
    const auto* const known = std::find(read_names.begin(), read_names.end(), reads);
    if (known == read_names.end()) refuse("reads must be stashed, delayed or newest, is '" + reads + "'");
    out.reads = static_cast<weights_read>(known - read_names.begin());
    for (const json& rank : array(member(all, "a schedule", "ranks"), "ranks")) {
      out.ranks.emplace_back();
      for (const json& word : array(rank, "a rank")) out.ranks.back().push_back(slot_of(text(word, "a slot")));
    }
    try {
      check(out);
    } catch (const bad_input& e) {
      refuse(e.what());
    }
    return out;
  }

 private:
  int count(const json& all, const char* key) const {
    const json& n = member(all, "a schedule", key);
    if (!n.is_number_integer() || n < 1 || n > 1000000)
      refuse(std::string(key) + " must be a number from 1 to 1000000, is " + shown(n));
    return n.get<int>();
  }
  slot slot_of(const std::string& word) const {
    const std::size_t kind = word.empty() ? std::string_view::npos : slot_letters.find(word[0]);
    slot out{slot::forward, -1, -1};
    if (kind != std::string_view::npos) {
      out.kind = static_cast<slot::kind_t>(kind);
      const char *const begin = word.data() + 1, *const end = word.data() + word.size();
      const auto stage = std::from_chars(begin, end, out.stage);
      if (stage.ec == std::errc() && stage.ptr != end && *stage.ptr == '.') {
        const auto micro_batch = std::from_chars(stage.ptr + 1, end, out.micro_batch);
        if (micro_batch.ec == std::errc() && micro_batch.ptr == end) return out;
      }
    }
    refuse("'" + word + "' is no slot: those are f, b, i, w or u, a stage, a dot and a micro-batch, as f0.3");
  }
};

}  // namespace detail

/// Throws bad_input, which names the place, for text that is no schedule (`check`). `where`: the file, for sentences.
inline pipeline_schedule read_schedule(std::string_view text, const std::string& where = {}) {
  return detail::schedule_reader(text, where).read();
}

/// The same of a file.
inline pipeline_schedule load_schedule(const std::string& path) {
  const std::optional<std::string> text = detail::whole_file(path);
  if (!text) throw bad_input(path + ": cannot be read");
  return read_schedule(*text, path);
}

/// What `load_schedule` reads, for `write_file`.
inline std::string write_schedule(const pipeline_schedule& s) {
  nlohmann::ordered_json out{{"version", 1},
                             {"name", s.name},
                             {"stages", s.stages},
                             {"micro_batches", s.micro_batches},
                             {"batch", s.batch},
                             {"reads", detail::read_names[static_cast<std::size_t>(s.reads)]},
                             {"ranks", nlohmann::ordered_json::array()}};
  if (s.slices > 1) out["slices"] = s.slices;
  for (const std::vector<slot>& mine : s.ranks) {
    nlohmann::ordered_json words = nlohmann::ordered_json::array();
    for (const slot& x : mine)
      words.push_back(detail::slot_letters[x.kind] + std::to_string(x.stage) + "." + std::to_string(x.micro_batch));
    out["ranks"].push_back(std::move(words));
  }
  return out.dump() + "\n";
}

}  // namespace cfp
