// Finds signers whose higher nonces can never be mined, because a nonce below the cursor is free on the chain and no
// open transaction has it: a deep reorg has undone a transaction that had ended, a development chain was reset, or a
// pending transaction of another wallet was dropped. Such a signer waits for an operator (store/gap_store.hpp).
//
// A gap counts when two looks, some seconds apart, have found the same one, each with counts from an endpoint that has
// this node's head: a transaction that ended between the reads of one look is no gap in the next. A nonce whose
// transaction is in a block of this node's own branch is no gap, whatever the endpoint counts.
#pragma once

#include <atomic>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/store/cursor_store.hpp"
#include "tx/store/gap_store.hpp"

namespace fencepost::tx {

class GapWatcher {
 public:
  explicit GapWatcher(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  // Looks at every signer now: after a reorg, or an operator's action. Any thread.
  void look_now();

 private:
  struct Seen {
    bool due = false;  // until a look has succeeded
    SteadyClock::TimePoint looked_at;
    std::optional<std::int64_t> suspected;  // found by one look so far
    SteadyClock::TimePoint suspected_at;
    std::optional<std::int64_t> stored;  // signer_nonce_cursor.gap_nonce
  };

  awaitable<Worker::Next> watch();
  using Led = std::unordered_map<SignerKey, const SignerLease*>;
  std::vector<SignerLease> due_of(const Led& led, const std::vector<Cursor>& cursors);
  void note_look(const SignerKey& key);
  awaitable<> look(std::vector<SignerLease> leases);
  awaitable<std::vector<CountedSigner>> counts_of(std::vector<SignerLease> leases);
  awaitable<bool> on_own_branch_still(const Gap& gap);
  // What is to be stored about the signer; nullopt: nothing changes yet.
  std::optional<GapNote> judge(const CountedSigner& signer, const std::optional<Gap>& gap);
  awaitable<> store(std::vector<GapNote> notes);

  ChainContext& chain_;
  std::unordered_map<SignerKey, Seen> seen_;  // of the signers that this node leads
  std::atomic<bool> look_at_all_ = false;
  Worker worker_;
};

}  // namespace fencepost::tx
