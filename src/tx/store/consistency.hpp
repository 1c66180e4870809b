// Checks on live data that each transaction is exactly one of waiting, open and ended, and that its signer's cursor
// does not hide it from the workers. Writes nothing and locks nothing.
//
// Every step changes all tables in one commit, and each check is one statement with one snapshot. So nodes may run
// meanwhile, and any contradiction is a bug or a change by hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "runtime/async.hpp"
#include "tx/model/lease.hpp"
#include "tx/model/reconcile_reason.hpp"

namespace fencepost::tx {

inline constexpr std::size_t kFaultExamples = 5;

// One way in which transactions contradict themselves.
struct Fault {
  std::string what;  // "open and ended"
  std::int64_t count = 0;
  std::vector<std::string> examples;  // ids of transactions, at most kFaultExamples

  friend bool operator==(const Fault&, const Fault&) = default;
};

struct WorkReport {
  std::int64_t open = 0;
  std::int64_t waiting = 0;
  std::vector<Fault> faults;  // empty: none was found
};

// Reads the transactions that are open or wait for a nonce. The cost does not depend on how many have ended. Throws as
// Connection::run: a QueryError with is_timeout() when it takes longer than the session's statement timeout.
awaitable<WorkReport> check_work(pg::Pool& pool);

// Reads every transaction, and finds what check_work cannot see: a transaction that has a nonce and is neither open nor
// ended, and an end without a transaction. Throws as check_work.
awaitable<std::vector<Fault>> check_records(pg::Pool& pool);

// A signer that gets no nonces until an operator has acted.
struct WaitingSigner {
  SignerKey key;
  ReconcileReason reason = ReconcileReason::kChainAhead;
  std::optional<std::int64_t> gap_nonce;

  friend bool operator==(const WaitingSigner&, const WaitingSigner&) = default;
};
// At most `limit`, by key.
awaitable<std::vector<WaitingSigner>> waiting_signers(pg::Pool& pool, std::size_t limit);

}  // namespace fencepost::tx
