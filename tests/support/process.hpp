// Runs a command to its end and returns its output and its exit status: for tests of programs.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/child_process.hpp"

namespace fencepost::test {

struct Finished {
  ExitStatus status;
  std::string out;
  std::string err;
};

// Throws if the command cannot be started. If it exceeds the time limit, kills it and its children, and throws.
// `env` is added to our environment.
Finished run_command(std::vector<std::string> argv, const std::vector<std::string>& env = {},
                     std::chrono::milliseconds patience = std::chrono::seconds(60));

// Our environment as "NAME=value", in which these variables replace those of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace fencepost::test
