// A real EVM chain for tests: anvil, on a free port, stopped and forgotten at the end.
//
//   test::Anvil chain;                        // a block per transaction
//   test::Anvil chain({"--block-time", "1"}); // or whatever anvil's options say
//
// Chain id 31337 and ten funded accounts, of anvil's well-known mnemonic.
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
  // Returns when it answers; throws when it does not.
  explicit Anvil(std::vector<std::string> options = {});
  ~Anvil();

  std::uint16_t port() const { return port_; }
  std::string url() const;
  pid_t pid() const { return child_->pid(); }
  // As a crash would.
  void kill();

 private:
  TempDir dir_{"anvil"};
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
};

// The native program that `npm ci` has brought, or the one in PATH. Never npm's wrapper, which leaves its child
// behind when it is killed. Throws when there is none.
std::filesystem::path anvil_program();

}  // namespace fencepost::test
