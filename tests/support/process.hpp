// Runs a command to its end and tells what it said: for tests of programs.
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

// Throws when it cannot be started, or (after killing it and what it started) when it takes longer than that.
// `env` is added to ours.
Finished run_command(std::vector<std::string> argv, const std::vector<std::string>& env = {},
                     std::chrono::milliseconds patience = std::chrono::seconds(60));

// Our environment as "NAME=value", with these in place of those of the same name.
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace fencepost::test
