// The local chain of `fencepost up`: starts, supervises and stops anvil, and keeps its state between runs.
//
//   auto chain = DevChain::start({.dir = data_dir / "anvil"});
//   (*chain)->rpc_url()    // http://127.0.0.1:8545
//
// Ten funded accounts of anvil's well-known mnemonic, chain id 31337, a block every second. Anvil ends with this
// process, also if this process is killed (anvil then writes its state first); the next start stops an orphaned anvil.
// An anvil that dies is restarted at the same address, with a state that is at most a few seconds old.
//
// The chain has its own thread. Only start and stop block their caller. Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/backoff.hpp"
#include "base/error.hpp"

namespace fencepost {

class DevChain {
 public:
  struct Options {
    std::filesystem::path dir;      // used by nothing else; created if missing
    std::uint16_t port = 8545;      // a free port instead if this one is in use
    std::filesystem::path program;  // empty: find_anvil()
    std::chrono::seconds block_time{1};
    std::chrono::seconds start_timeout{30};
    // The delay between restarts. The chain is unhealthy after it has died kTooManyDeaths times in a row, each time
    // within `settled` of its start, and healthy again after it has run for `settled`.
    BackoffOptions backoff{.initial = std::chrono::milliseconds(200), .cap = std::chrono::seconds(10)};
    std::chrono::milliseconds settled{10'000};
  };
  static constexpr int kTooManyDeaths = 3;
  static constexpr std::uint64_t kChainId = 31337;

  // Returns when anvil answers. Errors: anvil_missing, data_dir_in_use, data_dir_unusable, cannot_start,
  // dev_chain_failed (with anvil's last output).
  static Result<std::unique_ptr<DevChain>> start(Options options);

  ~DevChain();  // stops
  DevChain(const DevChain&) = delete;
  DevChain& operator=(const DevChain&) = delete;

  // Makes anvil write its state and end. Idempotent.
  void stop();

  const std::string& rpc_url() const;
  std::uint64_t chain_id() const { return kChainId; }
  // The ten dev signers: lowercase with 0x.
  const std::vector<std::string>& accounts() const;

  bool healthy() const;
  // How often anvil has died and was, or is being, restarted.
  std::uint64_t restarts() const;
  // -1 while anvil does not run.
  pid_t pid() const;

 private:
  class Supervisor;
  explicit DevChain(std::unique_ptr<Supervisor> supervisor);

  std::unique_ptr<Supervisor> supervisor_;
};

// The path of the native anvil: in node_modules of the working directory or of a directory above this program, or in
// PATH. If PATH has npm's wrapper (a script that leaves its child running when it dies), the wrapped program. Error
// `anvil_missing` if there is none.
Result<std::filesystem::path> find_anvil();

}  // namespace fencepost
