// The local chain of `fencepost up`: anvil, started, watched and stopped by us, with its state kept from run to run.
//
//   auto chain = DevChain::start({.dir = data_dir / "anvil"});
//   (*chain)->rpc_url()    // http://127.0.0.1:8545
//
// Ten funded accounts of anvil's well-known mnemonic, chain id 31337, a block every second. It dies with us, also
// when we are killed (it then writes its state first); one that is left all the same is stopped at the next start.
// If it dies by itself it is started again, at the same address, with the state of at most a few seconds ago.
//
// It has a thread of its own, so nothing here blocks a loop but start and stop, which block their caller. Any thread
// may ask.
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
    std::filesystem::path dir;      // of its own; made if missing
    std::uint16_t port = 8545;      // a free one instead when this is taken
    std::filesystem::path program;  // empty: find_anvil()
    std::chrono::seconds block_time{1};
    std::chrono::seconds start_timeout{30};
    // Between restarts. It is unhealthy once it has died kTooManyDeaths times in a row, each within `settled` of
    // its start, and healthy again when it has run for that long.
    BackoffOptions backoff{.initial = std::chrono::milliseconds(200), .cap = std::chrono::seconds(10)};
    std::chrono::milliseconds settled{10'000};
  };
  static constexpr int kTooManyDeaths = 3;
  static constexpr std::uint64_t kChainId = 31337;

  // Returns when it answers. Errors: anvil_missing, data_dir_in_use, data_dir_unusable, cannot_start,
  // dev_chain_failed (with what it said last).
  static Result<std::unique_ptr<DevChain>> start(Options options);

  ~DevChain();  // stops
  DevChain(const DevChain&) = delete;
  DevChain& operator=(const DevChain&) = delete;

  // Writes its state and ends. Idempotent.
  void stop();

  const std::string& rpc_url() const;
  std::uint64_t chain_id() const { return kChainId; }
  // The ten dev signers: lowercase with 0x.
  const std::vector<std::string>& accounts() const;

  bool healthy() const;
  // How often it has died and was, or is being, started again.
  std::uint64_t restarts() const;
  // -1 while it does not run.
  pid_t pid() const;

 private:
  class Supervisor;
  explicit DevChain(std::unique_ptr<Supervisor> supervisor);

  std::unique_ptr<Supervisor> supervisor_;
};

// The native anvil: from node_modules of the working directory or of a directory above this program, or from PATH. If
// PATH has npm's wrapper (a script that dies without its child), the program that it wraps. `anvil_missing` when
// there is none.
Result<std::filesystem::path> find_anvil();

}  // namespace fencepost
