#include "files.hpp"

#include "arguments.hpp"

#include <cfp/file/checkpoint_files.hpp>
#include <cfp/file/new_file.hpp>
#include <cfp/pipeline/named_schedules.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

namespace program {

namespace fs = std::filesystem;

std::string own_file(const std::string& folder, const std::string& option, const std::string& asked) {
  if (cfp::graphs::is_graph_file(asked)) return asked;
  try {
    const cfp::families::carried_file of = carried(folder, option, asked);
    if (of.by_name) return {};
    return fs::is_directory(of.path) ? (fs::path(of.path) / "config.json").string() : of.path;
  } catch (const cfp::bad_input&) {
    return {};
  }
}

namespace {

// That of a schedule that is none of those with a name.
std::string schedule_file(const std::string& asked) {
  const auto named = [&](const cfp::named_schedule& s) { return s.name == asked; };
  return std::any_of(cfp::named_schedules.begin(), cfp::named_schedules.end(), named) ? "" : asked;
}

// What is opened of a folder with a checkpoint; the folder itself where it has none: who reads it says so.
std::string checkpoint_file(const std::string& asked) {
  try {
    return asked.empty() ? asked : cfp::checkpoint_files::file_of(asked);
  } catch (const cfp::bad_input&) {
    return {};
  }
}

// Those of a checkpoint that is opened by its index: no one of them can be written over, the rest would be another's.
std::vector<std::string> parts_of(const std::string& opened) {
  if (fs::path(opened).extension() != ".json") return {};
  try {
    std::set<std::string> out;
    for (const auto& [tensor, file] : cfp::detail::checkpoint_index_reader(contents(opened), opened).run())
      out.insert((fs::path(opened).parent_path() / file).string());
    return {out.begin(), out.end()};
  } catch (const cfp::bad_input&) {
    return {};  // whoever reads it says why
  }
}

// Going on over the file that one began from is what people do.
bool goes_on(const named_file& a, const named_file& b) {
  const auto are = [&](const std::string& from, const std::string& to) {
    return (a.option == from && b.option == to) || (a.option == to && b.option == from);
  };
  return are("--load-state", "--save-state") || are("--load-weights", "--save-weights") || are("--plan", "--save-plan");
}

fs::path place(const std::string& path) {
  std::error_code none;
  return fs::weakly_canonical(fs::absolute(path, none), none);
}

// A file is written under another name first.
bool writes_over(const named_file& a, const named_file& b) {
  const fs::path at = place(a.path), other = place(b.path);
  return a.written && ((other == at && !goes_on(a, b)) || other == at.string() + ".new");
}

// Why a file cannot be written there, or nothing.
std::string obstacle(const std::string& path) {
  try {
    const cfp::new_file file(path);
    errno = 0;
    if (std::ofstream(file.beside())) return {};  // what was made goes with `file`
    return path + ": cannot be written" + (errno != 0 ? std::string(": ") + std::strerror(errno) : "");
  } catch (const cfp::bad_input& e) {
    return e.what();
  }
}

}  // namespace

std::vector<named_file> named_files(const arguments& a) {
  const bool measures = a.machine.empty() ? a.plan.empty() : a.backend == "cuda";
  std::vector<named_file> out{{"--model", own_file("models", "--model", a.model), true, false},
                              {"--machine", own_file("machines", "--machine", a.machine), true, false},
                              {"--fleet", own_file("fleets", "--fleet", a.fleet), true, false},
                              {"SCHEDULE", schedule_file(a.pipeline), true, false},
                              {"--text", a.text, true, false},
                              {"--tokens", a.tokens, true, false},
                              {"--plan", a.plan, true, false},
                              {"--against", a.against, true, false},
                              {"--load-state", a.load_state, true, false},
                              {"--load-weights", checkpoint_file(a.load_weights), true, false},
                              {"--profile", a.profile, true, measures},
                              {"--save-plan", a.save_plan, false, true},
                              {"--save-header", a.save_header, false, true},
                              {"--save-state", a.save_state, false, true},
                              {"--save-weights", a.save_weights, false, true},
                              {"--save-machine", a.save_machine, false, true},
                              {"--save-schedule", a.save_schedule, false, true},
                              {"--svg", a.svg, false, true},
                              {"-o", a.output, false, true},
                              {"--trace", a.trace, false, true},
                              {"--summary", a.summary, false, true}};
  for (std::string& part : parts_of(checkpoint_file(a.load_weights)))
    out.push_back({"a part of --load-weights", std::move(part), true, false});
  std::erase_if(out, [](const named_file& f) { return f.path.empty(); });
  return out;
}

std::string contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();  // of a directory nothing, and nothing is thrown
  return out.str();
}

std::string wrong_files(const arguments& a) {
  const std::vector<named_file> files = named_files(a);
  std::error_code none;
  for (const named_file& f : files)
    if (f.read && fs::is_directory(f.path, none)) return f.option + (" " + f.path) + ": it is a directory, give a file";
  for (std::size_t j = 1; j < files.size(); ++j)
    for (std::size_t i = 0; i < j; ++i)
      if (writes_over(files[i], files[j]) || writes_over(files[j], files[i]))
        return files[j].option + (" " + files[j].path) + ": one file for this and for " + files[i].option +
               ", and one would overwrite the other; give two";
  for (const named_file& f : files)
    if (f.written)
      if (const std::string why = obstacle(f.path); !why.empty()) return f.option + (" " + why);
  return {};
}

}  // namespace program
