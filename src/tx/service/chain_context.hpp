// The objects that the workers of one chain share, and the functions through which they write.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "evm/chain.hpp"
#include "evm/keys/key_ring.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "tx/options.hpp"
#include "tx/service/fee_policy.hpp"
#include "tx/service/hash_waits.hpp"
#include "tx/service/last_balances.hpp"
#include "tx/service/lease_manager.hpp"
#include "tx/service/nonce_history.hpp"
#include "tx/service/sent_transactions.hpp"
#include "tx/service/signer_hints.hpp"
#include "tx/service/tx_change_signal.hpp"
#include "tx/store/attempt_store.hpp"
#include "tx/store/reject_store.hpp"
#include "tx/store/step_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

struct ChainContext {
  evm::Chain& evm_chain;
  Executor home;  // the chain's loop, on which all of its workers run
  Runtime& runtime;
  pg::Database& database;
  evm::ChainConnector& connector;  // owned by evm_chain
  evm::BlockFollower& follower;    // owned by evm_chain
  evm::KeyRing& keys;
  LeaseManager& leases;
  TxChangeSignal& changes;
  HashWaits& hashes;
  Metrics& metrics;
  ChainOptions options;
  SentTransactions sent{20'000};       // on the chain's loop
  evm::ListedTransactions old_blocks;  // that were asked for because of a receipt; on the chain's loop
  ChainFeeKind fee_kind{options.fees.kind, evm_chain.name(), metrics};
  std::unique_ptr<FeePolicy> fees = make_fee_policy(connector, follower, fee_kind, options.fees);

  // What each endpoint counted, by its index, while an operator's proof had to wait (service/give_up.hpp). On the
  // chain's loop.
  std::map<std::size_t, NonceHistory> endpoint_counts = {};
  LastBalances balances = {};                     // any thread
  std::atomic<std::int64_t> block_gas_limit = 0;  // of the newest block; 0: unknown. Any thread

  // Set by the owner of the workers. Any thread.
  std::function<void(SignerHint)> wake_submitter = {};
  std::function<void(std::vector<DueSubmit>)> submit = {};  // transactions that were just given their nonce
  std::function<void(SignerHint)> wake_promoter = {};
  std::function<void()> wake_resubmitter = {};
  std::function<void()> wake_receipts = {};
  std::function<void()> wake_stuck_watcher = {};
  std::function<void()> look_for_gaps = {};
  // Cancels the transaction as an operator would (fees.fill_rejected).
  std::function<awaitable<>(Uuid tx_id, std::string why)> cancel_rejected = {};
  // Called by `apply` for each receipt that it stored. On the chain's loop.
  std::function<void(std::int64_t block)> on_mined = {};
  // See ReceiptChecker::listing. On the chain's loop.
  std::function<std::optional<evm::Listing>(const std::string& tx_hash)> find_listing = {};
  // See ReceiptChecker::expect. On the chain's loop.
  std::function<void(const std::string& tx_hash, evm::Listing listing)> expect_receipt = {};

  const std::string& node() const { return leases.identity().node_id; }
  std::int64_t chain_id() const { return evm_chain.id(); }

  // Applies the steps in one commit, logs each, wakes the requests that wait for these transactions, and drops leases
  // that turn out to be lost. One outcome per step, in order. A step that PostgreSQL cannot store fails alone: it is
  // logged, and its outcome is kMoved.
  awaitable<std::vector<StepOutcome>> apply(std::vector<Step> steps);
  // The same for claims; wakes the requests that wait for the hash.
  awaitable<std::vector<ClaimResult>> claim(std::vector<Claim> claims);

  // The signers' transaction counts, one for each, from an endpoint that has every block that this node knows of: the
  // count of an endpoint that is behind would give nonces a second time. On the chain's loop.
  awaitable<std::vector<Result<std::int64_t>>> chain_nonces(std::vector<std::string> signers, evm::NonceTag tag);
  // Ends a transaction that can never be sent, if that is certain (store/reject_store.hpp) and no endpoint knows an
  // attempt that the endpoints have refused (service/known_attempts.hpp); else kMoved. Logs it, wakes
  // the requests that wait for it, and the promoter, which may assign its nonce again.
  awaitable<StepOutcome> reject(Rejection rejection);

  // How long a worker may finish its current step when the node stops. It is short because an interrupted step is as
  // safe as a crash, and a database that hangs must not delay the release of the leases.
  static constexpr std::chrono::milliseconds kStopGrace{500};

  // How long a claimed broadcast belongs to this worker alone. If no outcome is stored by then, the same bytes are sent
  // again.
  std::chrono::milliseconds claim_patience() const {
    return std::min<std::chrono::milliseconds>(options.resubmit.interval, std::chrono::seconds(30));
  }
  // The time until an accepted transaction is broadcast again. kNever when resubmission is disabled.
  std::chrono::milliseconds until_resubmit() const {
    return options.resubmit.enabled ? options.resubmit.interval : kNever;
  }

  // The delay before the next try of an action that failed `tries` times in a row: 1 s, 2 s, 4 s, … 60 s.
  static std::chrono::milliseconds retry_delay(std::int32_t tries);
};

}  // namespace fencepost::tx
