// Compares the cursors with the chain: seeds a cursor at the signer's first use, advances it when other senders use a
// shared signer, and blocks an exclusive signer whose chain nonce is above its cursor, because that means lost history
// or another sender.
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

  // Called right after these leases were acquired. Nonces that the chain does not return now are asked for later.
  awaitable<> on_taken(std::vector<SignerLease> leases);

 private:
  awaitable<Worker::Next> follow();
  awaitable<std::vector<Cursor>> cursors_of(std::vector<SignerLease> leases);
  void keep_due(std::vector<SignerLease>& leases, const std::vector<Cursor>& cursors) const;
  awaitable<> observe(std::vector<SignerLease> leases);
  Metrics::Gauge& waiting_gauge(ReconcileReason reason);
  void note(const ChainNonce& seen, const CursorResult& result);

  ChainContext& chain_;
  Worker worker_;
};

}  // namespace fencepost::tx
