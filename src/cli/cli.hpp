// The command line: `fencepost <noun> <verb> …`.
#pragma once

namespace fencepost::cli {

// Runs one command and returns its exit code (cli/exit_code.hpp).
int run(int argc, char** argv);

}  // namespace fencepost::cli
