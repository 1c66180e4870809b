// `fencepost help [command …]` and `fencepost help exit-codes`.
#pragma once

#include "cli/nouns.hpp"

namespace fencepost::cli {

// Requires: `app` outlives the run.
void add_help(CLI::App& app, Run& run);

}  // namespace fencepost::cli
