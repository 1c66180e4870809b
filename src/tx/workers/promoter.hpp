// Assigns nonces to transactions that wait for one (CREATED), in creation order, when their signer's window has room.
#pragma once

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"

namespace fencepost::tx {

class Promoter {
 public:
  explicit Promoter(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake(const SignerHint& hint) {
    hints_.add(hint);
    worker_.wake();
  }

 private:
  awaitable<Worker::Next> promote_waiting();
  std::vector<SignerLease> leases_of(const SignerHint& hint) const;

  ChainContext& chain_;
  SignerHints hints_;
  Worker worker_;
};

}  // namespace fencepost::tx
