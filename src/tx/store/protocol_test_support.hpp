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

  std::int64_t count(const std::string& what, const SignerKey& key) {
    return admin.value<std::int64_t>("SELECT count(*) FROM managed_tx WHERE chain_id = $1 AND signer = $2 AND " + what,
                                     pg::Params::of(key.chain_id, key.signer));
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
  static constexpr std::string_view kBroken = R"(
    WITH t AS (SELECT * FROM managed_tx WHERE chain_id = $1 AND signer = $2),
         c AS (SELECT * FROM signer_nonce_cursor WHERE chain_id = $1 AND signer = $2),
         l AS (SELECT * FROM signer_lease WHERE chain_id = $1 AND signer = $2),
         h AS (SELECT h.*, lag(fencing_token) OVER (ORDER BY h.seq) AS earlier_token
                 FROM step_history AS h WHERE subject_id IN (SELECT tx_id FROM t))
    SELECT concat_ws('; ',
      CASE WHEN (SELECT count(nonce) <> coalesce(max(nonce) - $3 + 1, 0) OR min(nonce) <> $3 FROM t)
           THEN 'nonces have a gap' END,
      CASE WHEN (SELECT next_nonce <> coalesce((SELECT max(nonce) + 1 FROM t), $3) FROM c)
           THEN 'the cursor is not after the last nonce' END,
      CASE WHEN (SELECT count(*) <> coalesce(max(creation_seq) + 1, 0) FROM t) THEN 'places in line have a gap' END,
      CASE WHEN (SELECT next_creation <> (SELECT count(*) FROM t) FROM c) THEN 'the line''s end is wrong' END,
      CASE WHEN EXISTS (SELECT FROM t AS a JOIN t AS b ON a.creation_seq < b.creation_seq
                         WHERE a.nonce > b.nonce OR (a.nonce IS NULL AND b.nonce IS NOT NULL))
           THEN 'nonces are not in creation order' END,
      CASE WHEN EXISTS (SELECT FROM t, l WHERE t.fencing_token > l.fencing_token) THEN 'a token from nowhere' END,
      CASE WHEN EXISTS (SELECT FROM h WHERE fencing_token < earlier_token) THEN 'an old token wrote after a new one' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 1 <> (SELECT count(*) FROM h
                                                   WHERE h.subject_id = t.tx_id AND h.from_state IS NULL))
           THEN 'a transaction did not begin exactly once' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 1 <> (SELECT count(*) FROM outbox_event AS e
                                                   WHERE e.subject = 'tx/' || t.tx_id AND e.type = 'TxAccepted'))
           THEN 'a transaction was not accepted exactly once' END,
      CASE WHEN EXISTS (SELECT FROM t WHERE 'CREATED' = (SELECT to_state FROM h WHERE h.subject_id = t.tx_id
                                                          ORDER BY seq LIMIT 1)
                                        AND t.nonce IS NOT NULL
                                        AND 1 <> (SELECT count(*) FROM outbox_event AS e
                                                   WHERE e.subject = 'tx/' || t.tx_id AND e.type = 'TxAllocated'))
           THEN 'a promotion was not told exactly once' END))";

  std::uint64_t signers_ = 0x1000;
};

}  // namespace fencepost::tx
