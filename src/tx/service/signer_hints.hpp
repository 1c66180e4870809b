// Signers for which a worker probably has something to do, so that it need not look at every signer each time it is
// woken. Only a hint: a worker that uses hints also looks at all signers once per `interval`.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/steady_clock.hpp"

namespace fencepost::tx {

// nullopt: any signer.
using SignerHint = std::optional<std::vector<std::string>>;

// Any thread may call its methods.
class SignerHints {
 public:
  explicit SignerHints(std::chrono::milliseconds interval, const SteadyClock& clock = SteadyClock::real())
      : interval_(interval), clock_(clock) {}

  void add(const SignerHint& hint);

  // The signers that were added since the last call. nullopt: look at all signers, because any signer was hinted at, or
  // because that was last done `interval` ago or never.
  SignerHint take();

 private:
  const std::chrono::milliseconds interval_;
  const SteadyClock& clock_;
  std::mutex mutex_;
  std::set<std::string> signers_;
  bool any_ = true;
  SteadyClock::TimePoint looked_at_all_;
};

}  // namespace fencepost::tx
