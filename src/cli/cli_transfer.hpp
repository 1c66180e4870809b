// The command line of the noun `transfer`.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace fencepost {

// Adds the subcommands; parsing one of them sets `run` to what it asks for.
void add_transfer_commands(CLI::App& app, std::function<int()>& run);

}  // namespace fencepost
