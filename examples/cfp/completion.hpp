// What a shell completes of a command line of `cfp`.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace program {

/// A script for bash, or for zsh with its bashcompinit: commands, their options, what options take of a few words,
/// names of models and machines, else files.
std::string completion_script(const CLI::App& app);

}  // namespace program
