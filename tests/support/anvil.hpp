// A real EVM chain for tests: anvil on a free port. The destructor stops it; its state is lost.
//
//   test::Anvil chain;                        // a block per transaction
//   test::Anvil chain({"--block-time", "1"}); // any options of anvil
//
// The chain id is 31337. Ten accounts of anvil's well-known mnemonic are funded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

class Anvil {
 public:
  // Returns when anvil answers. Throws if it does not.
  explicit Anvil(std::vector<std::string> options = {});
  ~Anvil();

  std::uint16_t port() const { return port_; }
  std::string url() const;
  pid_t pid() const { return child_->pid(); }
  // SIGKILL, as in a crash.
  void kill();

 private:
  TempDir dir_{"anvil"};
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
};

// The path of the native program that `npm ci` installed, or of the one in PATH. Never npm's wrapper: its child
// survives when the wrapper is killed. Throws if there is none.
std::filesystem::path anvil_program();

}  // namespace fencepost::test
