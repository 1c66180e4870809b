// The command line of the nouns `tx` and `signer`.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace fencepost {

// Add the subcommands; parsing one of them sets `run` to what it asks for.
void add_tx_commands(CLI::App& app, std::function<int()>& run);
void add_signer_commands(CLI::App& app, std::function<int()>& run);

}  // namespace fencepost
