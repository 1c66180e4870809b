// The client for TypeScript (clients/typescript) as npm would publish it, for programs that use it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/child_process.hpp"

namespace fencepost::test {

// The package, which ctest makes before the tests that need it (tests/CMakeLists.txt).
std::filesystem::path client_package();

// Installs the package as `dir`/node_modules/@fencepost/client, and returns that path.
std::filesystem::path install_client(const std::filesystem::path& dir);

// A program in the background. The destructor kills it.
class RunningProgram {
 public:
  // stdout and stderr go to the file. `env` is added to ours.
  RunningProgram(std::vector<std::string> argv, std::filesystem::path output, const std::vector<std::string>& env);

  std::string output() const;  // so far; the file may have the output of earlier programs, too
  bool running() { return child_.running(); }
  // Waits for its end, for at most `patience`. Throws with the output if it does not end.
  ExitStatus wait(std::chrono::milliseconds patience = std::chrono::seconds(90));
  ExitStatus signal(int number);  // and waits for its end

 private:
  std::filesystem::path output_;
  ChildProcess child_;
};

}  // namespace fencepost::test
