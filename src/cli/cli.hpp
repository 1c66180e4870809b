// The command line: `fencepost <noun or verb> …`.
#pragma once

namespace fencepost {

// Runs one command and returns its exit code: 0 done, 1 failed, 2 the command line is wrong, and for
// commands that wait for a transaction or a transfer 3 it failed, 4 it is not there yet.
int run_cli(int argc, char** argv);

}  // namespace fencepost
