#include "tx/store/fence.hpp"

#include <utility>

#include "pg/params.hpp"

namespace fencepost::tx {

using pg::Statement;

FencedLeases::FencedLeases(const std::vector<SignerLease>& leases) {
  for (const auto& lease : leases) add(lease);
}

void FencedLeases::add(const SignerLease& lease) {
  chains.push_back(lease.key.chain_id);
  signers.push_back(lease.key.signer);
  tokens.push_back(lease.fencing_token);
}

void FencedRows::add(const SignerLease& lease, const Uuid& id) {
  FencedLeases::add(lease);
  ids.push_back(id);
}

// Has no condition on owner or expiry: a lease that has just expired would stay unlocked, and its owner's renewal in
// another session could revive it before statement 3 checks it.
const Statement sql::kLockLeases{"tx_lease_lock", R"(
  SELECT l.signer
    FROM signer_lease AS l
    JOIN (SELECT DISTINCT chain_id, signer FROM unnest($1::bigint[], $2::text[]) AS w(chain_id, signer)) AS w
   USING (chain_id, signer)
   ORDER BY l.chain_id, l.signer
     FOR KEY SHARE OF l)"};

// Checks owner and token only: neither can become this node's while the lease is locked. The owner can renew an expired
// lease at any moment, so a check of the expiry here could skip a cursor that statement 3 then uses.
const Statement sql::kLockCursors{"tx_cursor_lock", R"(
  SELECT c.signer
    FROM signer_nonce_cursor AS c
    JOIN signer_lease AS l USING (chain_id, signer)
    JOIN unnest($2::bigint[], $3::text[], $4::bigint[]) AS w(chain_id, signer, token)
      ON w.chain_id = l.chain_id AND w.signer = l.signer AND w.token = l.fencing_token
   WHERE l.owner_node = $1
   ORDER BY c.chain_id, c.signer
     FOR UPDATE OF c)"};

// The owner alone decides: a node id is one process, and a process does not block itself. Sorts by a row, because the
// planner would read all of tx_open in the order of the key when the plan is made while tx_open is empty.
const Statement sql::kLockRows{"tx_open_lock", R"(
  SELECT t.tx_id
    FROM tx_open AS t
   WHERE t.tx_id = ANY ($2::uuid[])
     AND $1 = (SELECT l.owner_node FROM signer_lease AS l WHERE l.chain_id = t.chain_id AND l.signer = t.signer)
   ORDER BY (t.chain_id, t.signer, t.nonce)
     FOR NO KEY UPDATE OF t)"};

namespace {

pg::Batch fenced(const FencedLeases& leases, const Statement& lock, pg::Params params) {
  pg::Batch batch;
  batch.lock_timeout(kLockPatience);
  batch.add(sql::kLockLeases, leases.chains, leases.signers);
  batch.add_params(lock, std::move(params));
  return batch;
}

}  // namespace

pg::Batch fence_cursors(const std::string& node, const FencedLeases& leases) {
  return fenced(leases, sql::kLockCursors, pg::Params::of(node, leases.chains, leases.signers, leases.tokens));
}

pg::Batch fence_rows(const std::string& node, const FencedRows& rows) {
  return fenced(rows, sql::kLockRows, pg::Params::of(node, rows.ids));
}

pg::Batch fence_cursors_and_rows(const std::string& node, const FencedRows& rows) {
  auto batch = fence_cursors(node, rows);
  batch.add(sql::kLockRows, node, rows.ids);
  return batch;
}

awaitable<pg::ResultSet> run_fenced(pg::Pool& pool, pg::Batch batch) {
  const auto connection = co_await pool.acquire();
  auto results = co_await connection->run(batch);
  co_return std::move(results.back());
}

StepOutcome read_outcome(const pg::Row& row) {
  const auto text = row.get<std::string_view>("outcome");
  return text == "done" ? StepOutcome::kDone : text == "fenced" ? StepOutcome::kFenced : StepOutcome::kMoved;
}

}  // namespace fencepost::tx
