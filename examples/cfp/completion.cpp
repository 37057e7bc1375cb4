#include "completion.hpp"

#include "arguments.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace program {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& w : words) out += (out.empty() ? "" : " ") + w;
  return out;
}

// What an option takes, if that is one of a few words: CLI11 has them in its help alone, as "{one,two}".
std::string choices(const CLI::Option& o) {
  const std::string type = o.get_type_name();
  const std::size_t from = type.find('{'), to = type.find('}');
  if (from == std::string::npos || to == std::string::npos) return {};
  std::string words = type.substr(from + 1, to - from - 1);
  std::replace(words.begin(), words.end(), ',', ' ');
  return words;
}

// A case of the script: what is completed behind a command and an option.
std::string case_of(const std::string& command, const CLI::Option& o) {
  std::string folder;  // of what is carried along
  for (const char* const some : {"models", "machines", "fleets"})
    if (o.get_name() + "s" == std::string("--") + some) folder = some;
  const std::string words = folder.empty() ? choices(o) : joined(carried_names(folder));
  if (words.empty()) return {};
  const std::string files = folder.empty() ? "" : " files=1";  // somebody's own
  return "    '" + command + " " + o.get_name() + "') words='" + words + "'" + files + " ;;\n";
}

}  // namespace

std::string completion_script(const CLI::App& app) {
  std::string commands, options, values;
  for (const CLI::App* const c : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += (commands.empty() ? "" : " ") + c->get_name();
    std::vector<std::string> all;
    for (const CLI::Option* const o : c->get_options()) {
      if (o->get_name().rfind("--", 0) == 0) all.push_back(o->get_name());
      values += case_of(c->get_name(), *o);
    }
    options += "    " + c->get_name() + ") words='" + joined(all) + "' ;;\n";
  }
  return "# What bash completes of a command line of cfp: eval \"$(cfp completion)\"\n"
         "_cfp() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words= "
         "files=\n"
         "  if [ \"$COMP_CWORD\" = 1 ]; then words='" +
         commands +
         "'\n"
         "  else case \"$command $before\" in\n" +
         values +
         "    *\" --\"*) files=1 ;;\n"
         "  esac; fi\n"
         "  case $word in -*) case $command in\n" +
         options +
         "  esac; files= ;; esac\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\" || true\n"
         "    [ -z \"$files\" ] || compgen -f -- \"$word\")\n"
         "}\n"
         "complete -o filenames -F _cfp cfp\n";
}

}  // namespace program
