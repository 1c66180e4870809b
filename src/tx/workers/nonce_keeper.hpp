// Keeps the cursors in step with the chain: seeds them at first use, follows what others do with a shared signer, and
// stops an exclusive one whose chain nonce is above its cursor, since that means lost history or a foreign sender.
#pragma once

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/cursor_store.hpp"

namespace fencepost::tx {

class NonceKeeper {
 public:
  explicit NonceKeeper(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

  // Right after these leases were taken. What the chain does not tell now is asked again later.
  awaitable<> on_taken(std::vector<SignerLease> leases);

 private:
  awaitable<Worker::Next> follow();
  awaitable<std::vector<Cursor>> cursors_of(std::vector<SignerLease> leases);
  void keep_due(std::vector<SignerLease>& leases, const std::vector<Cursor>& cursors) const;
  awaitable<> observe(std::vector<SignerLease> leases);
  void note(const ChainNonce& seen, const CursorResult& result);

  ChainContext& chain_;
  Metrics::Gauge& mismatched_;
  Worker worker_;
};

}  // namespace fencepost::tx
