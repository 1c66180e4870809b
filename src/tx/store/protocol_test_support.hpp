// Signers, transactions and their invariants, for the tests of the fenced SQL.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/uuid.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"
#include "tx/store/create_store.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/lease_store.hpp"

namespace fencepost::tx {

inline constexpr std::int64_t kChain = 31337;

inline std::string hash_of(std::uint64_t number) {
  return fmt::format("0x{:064x}", number);
}

// One database per test, and one new signer per case.
class ProtocolTest : public ::testing::Test {
 protected:
  using Session = interleaving::Session;
  using Theatre = interleaving::Theatre;

  // A signer whose lease `owner` holds under token 1, and whose next nonce is `nonce` (none: not seeded).
  SignerLease signer_of(const std::string& owner, std::optional<std::int64_t> nonce = 0) {
    const SignerKey key{kChain, fmt::format("0x{:040x}", ++signers_)};
    admin.must(
        "INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at) "
        "VALUES ($1, $2, $3, 1, clock_timestamp() + interval '1 hour')",
        pg::Params::of(key.chain_id, key.signer, owner));
    admin.must("INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce) VALUES ($1, $2, $3)",
               pg::Params::of(key.chain_id, key.signer, nonce));
    return {key, 1};
  }

  NewTx new_tx(const SignerKey& key, std::optional<std::string> request_id = std::nullopt, char payload = 'p') {
    return {.tx_id = ids.next(),
            .key = key,
            .request_id = std::move(request_id),
            .payload = fmt::format(R"({{"to":"{}"}})", payload),
            .payload_hash = std::string(32, payload),
            .gas_limit = 21'000};
  }

  // Sets the expiry so far in the past that no skew allowance covers it.
  static constexpr std::string_view kExpire =
      "UPDATE signer_lease SET expires_at = clock_timestamp() - interval '1 hour' WHERE chain_id = $1 AND signer = $2";
  void expire(const SignerKey& key) { admin.must(kExpire, pg::Params::of(key.chain_id, key.signer)); }

  static pg::Params acquire_params(const std::string& node, const std::vector<std::string>& signers) {
    return pg::Params::of(node, kChain, signers, 10'000, 1'000);
  }
  static pg::Params lease_params(const std::string& node, const std::vector<SignerLease>& leases) {
    std::vector<std::int64_t> chains, tokens;
    std::vector<std::string> signers;
    for (const auto& lease : leases) {
      chains.push_back(lease.key.chain_id);
      signers.push_back(lease.key.signer);
      tokens.push_back(lease.fencing_token);
    }
    return pg::Params::of(node, chains, signers, tokens);
  }
  static pg::Params renew_params(const std::string& node, const std::vector<SignerLease>& leases) {
    return lease_params(node, leases).add(10'000).add(1'000);
  }

  // The column "outcome" of a create or step statement.
  static std::vector<std::string> outcomes(const interleaving::Answer& answer) {
    std::vector<std::string> out;
    if (!answer.ok()) return {answer.sqlstate};
    for (const auto row : answer.rows) out.push_back(row.get<std::string>("outcome"));
    return out;
  }

  std::string owner_of(const SignerKey& key) {
    return admin.value<std::string>(
        "SELECT owner_node || '/' || fencing_token FROM signer_lease WHERE chain_id = $1 AND signer = $2",
        pg::Params::of(key.chain_id, key.signer));
  }

  // Counts the signer's transactions for which the condition holds: columns of tx_view, or of tx_open.
  std::int64_t count(const std::string& what, const SignerKey& key) { return count_in("tx_view", what, key); }
  std::int64_t count_open(const std::string& what, const SignerKey& key) { return count_in("tx_open", what, key); }

  // Changes an open transaction. `values`: the assignments of the UPDATE's SET clause.
  void set(const Uuid& id, const std::string& values) {
    admin.must(fmt::format("UPDATE tx_open SET {} WHERE tx_id = $1 RETURNING 1", values), pg::Params::of(id)).one();
  }
  void mine(const Uuid& id, std::int64_t block, bool succeeded = true) {
    set(id, fmt::format("state = 'TRACKING', receipt_block = {}, receipt_hash = '{}', succeeded = {}", block,
                        hash_of(static_cast<std::uint64_t>(block)), succeeded));
    admin.must("INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt) VALUES ($1, $2, $3, '{}')",
               pg::Params::of(id, kChain, block));
  }
  // Ends an open transaction; CONFIRMED requires that it is mined.
  void end(const Uuid& id, std::string_view state = "CONFIRMED") {
    admin
        .must(
            "WITH t AS (DELETE FROM tx_open WHERE tx_id = $1 RETURNING *) "
            "INSERT INTO tx_ended (tx_id, chain_id, state, retry_count, tx_hash, receipt_block, receipt_hash) "
            "SELECT tx_id, chain_id, $2, retry_count, tx_hash, receipt_block, receipt_hash FROM t RETURNING 1",
            pg::Params::of(id, state))
        .one();
  }
  // Locks the work of a transaction in an open transaction of the session.
  static void lock(Session& session, const Uuid& id) {
    session.must("BEGIN");
    session.must("SELECT FROM tx_open WHERE tx_id = $1 FOR UPDATE", pg::Params::of(id)).one();
  }
  Uuid id_at(const SignerKey& key, std::int64_t nonce) {
    return admin.value<Uuid>("SELECT tx_id FROM managed_tx WHERE chain_id = $1 AND signer = $2 AND nonce = $3",
                             pg::Params::of(key.chain_id, key.signer, nonce));
  }

  std::string state_of(const Uuid& id) {
    return admin.value<std::string>("SELECT state FROM tx_view WHERE tx_id = $1", pg::Params::of(id));
  }
  // The history as reason and state, such as "accepted|ALLOCATED accepted by the chain|TRACKING".
  std::string history(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(why || '|' || to_state, ' ' ORDER BY seq), '') FROM history WHERE subject = $1",
        pg::Params::of("tx/" + id.to_string()));
  }
  std::string events(const Uuid& id) {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(type, ' ' ORDER BY seq), '') FROM outbox WHERE subject = $1",
        pg::Params::of("tx/" + id.to_string()));
  }
  std::int64_t count_events(std::string_view type) {
    return admin.value<std::int64_t>("SELECT count(*) FROM outbox WHERE type = $1", pg::Params::of(type));
  }

  // Checks the invariants of a signer. Returns the violated ones as text; empty: all hold.
  std::string broken(const SignerKey& key, std::int64_t first_nonce = 0) {
    return admin.value<std::string>(kBroken, pg::Params::of(key.chain_id, key.signer, first_nonce));
  }

  test::TestDatabase db{test::Template::kMigrated};
  Session admin{db.dsn(), "admin"};
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids{clock, random};

 private:
  std::int64_t count_in(std::string_view relation, const std::string& what, const SignerKey& key) {
    return admin.value<std::int64_t>(
        fmt::format("SELECT count(*) FROM {} WHERE chain_id = $1 AND signer = $2 AND {}", relation, what),
        pg::Params::of(key.chain_id, key.signer));
  }

  static constexpr std::string_view kBroken = R"(
    WITH t AS (SELECT * FROM tx_view WHERE chain_id = $1 AND signer = $2),
         o AS (SELECT * FROM tx_open WHERE chain_id = $1 AND signer = $2),
         c AS (SELECT * FROM signer_nonce_cursor WHERE chain_id = $1 AND signer = $2),
         l AS (SELECT * FROM signer_lease WHERE chain_id = $1 AND signer = $2),
         e AS (SELECT e.*, t.tx_id, lag(e.fencing_token) OVER (ORDER BY e.seq) AS earlier_token
                 FROM event AS e JOIN t ON e.subject = 'tx/' || t.tx_id)
    SELECT concat_ws('; ',
      CASE WHEN (SELECT count(nonce) <> coalesce(max(nonce) - $3 + 1, 0) OR min(nonce) <> $3 FROM t)
           THEN 'nonces have a gap' END,
      CASE WHEN (SELECT next_nonce <> coalesce((SELECT max(nonce) + 1 FROM t), $3) FROM c)
           THEN 'the cursor is not after the last nonce' END,
      CASE WHEN (SELECT count(*) <> coalesce(max(creation_seq) + 1, 0) FROM t) THEN 'places in line have a gap' END,
      CASE WHEN (SELECT next_creation <> (SELECT count(*) FROM t) FROM c) THEN 'the line''s end is wrong' END,
      CASE WHEN EXISTS (SELECT FROM t AS a JOIN t AS b ON a.creation_seq < b.creation_seq
                         WHERE a.nonce > b.nonce
                            OR (a.state = 'CREATED' AND b.nonce IS NOT NULL))
           THEN 'nonces are not in creation order' END,
      CASE WHEN EXISTS (SELECT FROM t, c WHERE t.state = 'CREATED' AND t.creation_seq < c.first_waiting)
           THEN 'a transaction waits before the first of the line' END,
      CASE WHEN EXISTS (SELECT FROM o, c WHERE o.receipt_block IS NULL AND o.nonce < c.first_unmined)
           THEN 'a nonce without a receipt below the first one' END,
      CASE WHEN EXISTS (SELECT FROM t
                         WHERE 1 <> (SELECT (t.nonce IS NULL AND t.released_nonce IS NULL AND NOT t.ended_unnumbered)::int
                                          + (SELECT count(*) FROM o
                                              WHERE o.tx_id = t.tx_id AND o.nonce IS NOT DISTINCT FROM t.nonce)
                                          + (SELECT count(*) FROM tx_ended AS d WHERE d.tx_id = t.tx_id)))
           THEN 'a transaction is not exactly one of waiting, open and ended' END,
      CASE WHEN EXISTS (SELECT FROM t, l WHERE t.fencing_token > l.fencing_token) THEN 'a token from nowhere' END,
      CASE WHEN EXISTS (SELECT FROM e WHERE fencing_token < earlier_token) THEN 'an old token wrote after a new one' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 1 <> (SELECT count(*) FROM e
                                                   WHERE e.tx_id = t.tx_id AND e.to_state IS NOT NULL
                                                     AND e.from_state IS NULL))
           THEN 'a transaction did not begin exactly once' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 1 <> (SELECT count(*) FROM e
                                                   WHERE e.tx_id = t.tx_id AND e.type = 'TxAccepted'))
           THEN 'a transaction was not accepted exactly once' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 'CREATED' = (SELECT to_state FROM e
                                                          WHERE e.tx_id = t.tx_id AND e.to_state IS NOT NULL
                                                          ORDER BY seq LIMIT 1)
                                        AND t.nonce IS NOT NULL
                                        AND 1 <> (SELECT count(*) FROM e
                                                   WHERE e.tx_id = t.tx_id AND e.type = 'TxAllocated'))
           THEN 'a promotion was not announced exactly once' END))";

  std::uint64_t signers_ = 0x1000;
};

}  // namespace fencepost::tx
