#include "tx/store/ability_store.hpp"

#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

#include "cluster/node_table.hpp"

namespace fencepost::tx {

using cluster::read_nodes;
using pg::Statement;

namespace {

std::optional<LeaseView> read_holder(const pg::ResultSet& rows, SignerKey key) {
  if (rows.empty()) return std::nullopt;
  const auto token = rows.one().get<std::optional<std::int64_t>>("fencing_token");
  return LeaseView{.key = std::move(key),
                   .owner_node = rows.one().get<std::string>("node_id"),
                   .fencing_token = token.value_or(0),
                   .expired = !token,
                   .advertise_url = rows.one().get<std::string>("advertise_url"),
                   .registered = true};
}

}  // namespace

#define FENCEPOST_ALIVE(n, silence)                                                                                 \
  "(" n                                                                                                             \
  ".heartbeat_at >= (SELECT max(newest.heartbeat_at) FROM cluster_node AS newest) - make_interval(secs => " silence \
  " / 1000.0))"
#define FENCEPOST_HAS_KEY(n, signer) \
  "EXISTS (SELECT FROM cluster_node_signer AS k WHERE k.node_id = " n ".node_id AND k.signer = " signer ")"
#define FENCEPOST_HAS_CHAIN(n, chain) \
  "EXISTS (SELECT FROM cluster_node_chain AS h WHERE h.node_id = " n ".node_id AND h.chain_id = " chain ")"

const Statement sql::kKeylessOrphans{"tx_lease_keyless_orphans", R"(
  SELECT l.chain_id, l.signer
    FROM signer_lease AS l
   WHERE l.chain_id = ANY ($1::bigint[])
     AND greatest(l.expires_at, l.renewed_at) <= clock_timestamp() - make_interval(secs => $2 / 1000.0)
     AND )" FENCEPOST_HAS_WORK("l") R"(
     AND NOT EXISTS (SELECT
                       FROM cluster_node AS n
                      WHERE )" FENCEPOST_ALIVE("n", "$4") R"(
                        AND (NOT n.says_abilities
                             OR ()" FENCEPOST_HAS_KEY("n", "l.signer") R"(
                                 AND )" FENCEPOST_HAS_CHAIN("n", "l.chain_id") R"()))
   ORDER BY random()
   LIMIT $3)"};

awaitable<std::vector<SignerKey>> find_keyless_orphans(pg::Pool& pool, std::vector<std::int64_t> chains,
                                                       std::chrono::milliseconds wait,
                                                       std::chrono::milliseconds silence, std::size_t limit) {
  const auto rows = co_await read_nodes(pool, sql::kKeylessOrphans, chains, wait.count(), limit, silence.count());
  std::vector<SignerKey> keys;
  for (const auto row : rows) keys.push_back(read_key(row));
  co_return keys;
}

const Statement sql::kKeyElsewhere{"tx_key_elsewhere", R"(
  SELECT w.chain_id, w.signer, w.fencing_token
    FROM unnest($2::bigint[], $3::text[], $4::bigint[]) AS w(chain_id, signer, fencing_token)
   WHERE EXISTS (SELECT
                   FROM cluster_node AS n
                  WHERE n.node_id <> $1
                    AND )" FENCEPOST_ALIVE("n", "$5") R"(
                    AND )" FENCEPOST_HAS_KEY("n", "w.signer") R"(
                    AND )" FENCEPOST_HAS_CHAIN("n", "w.chain_id") R"())"};

awaitable<std::vector<SignerLease>> led_elsewhere(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                  std::chrono::milliseconds silence) {
  if (leases.empty()) co_return leases;
  const FencedLeases w(leases);
  const auto rows = co_await read_nodes(pool, sql::kKeyElsewhere, node, w.chains, w.signers, w.tokens, silence.count());
  std::vector<SignerLease> out;
  for (const auto row : rows) out.push_back({read_key(row), row.get<std::int64_t>("fencing_token")});
  co_return out;
}

const Statement sql::kKeyHolder{"tx_key_holder", R"(
  SELECT n.node_id, n.advertise_url, l.fencing_token
    FROM cluster_node AS n
    LEFT JOIN LATERAL (SELECT * FROM signer_lease AS l WHERE l.chain_id = $1 AND l.signer = $2 LIMIT 1) AS l
           ON l.owner_node = n.node_id
          AND l.expires_at > clock_timestamp()
   WHERE n.node_id <> $3
     AND )" FENCEPOST_ALIVE("n", "$4") R"(
     AND )" FENCEPOST_HAS_KEY("n", "$2") R"(
     AND )" FENCEPOST_HAS_CHAIN("n", "$1") R"(
   ORDER BY l.fencing_token IS NOT NULL DESC, n.advertise_url <> '' DESC, n.heartbeat_at DESC
   LIMIT 1)"};

awaitable<std::optional<LeaseView>> find_key_holder(pg::Pool& pool, SignerKey key, std::string node,
                                                    std::chrono::milliseconds silence) {
  const auto rows = co_await read_nodes(pool, sql::kKeyHolder, key.chain_id, key.signer, node, silence.count());
  co_return read_holder(rows, std::move(key));
}

const Statement sql::kKnownSigner{"tx_known_signer", R"(
  SELECT EXISTS (SELECT FROM signer_lease AS l WHERE l.chain_id = $1 AND l.signer = $2)
      OR EXISTS (SELECT
                   FROM cluster_node AS n
                  WHERE )" FENCEPOST_HAS_KEY("n", "$2") R"(
                    AND )" FENCEPOST_HAS_CHAIN("n", "$1") R"() AS known)"};

awaitable<bool> is_known_signer(pg::Pool& pool, SignerKey key) {
  const auto rows = co_await read_nodes(pool, sql::kKnownSigner, key.chain_id, key.signer);
  co_return rows.one().get<bool>("known");
}

const Statement sql::kChainHolder{"tx_chain_holder", R"(
  SELECT n.node_id, n.advertise_url, NULL::bigint AS fencing_token
    FROM cluster_node AS n
   WHERE n.node_id <> $2
     AND )" FENCEPOST_ALIVE("n", "$3") R"(
     AND )" FENCEPOST_HAS_CHAIN("n", "$1") R"(
   ORDER BY n.advertise_url <> '' DESC, n.heartbeat_at DESC
   LIMIT 1)"};

awaitable<std::optional<LeaseView>> find_chain_holder(pg::Pool& pool, std::int64_t chain_id, std::string node,
                                                      std::chrono::milliseconds silence) {
  const auto rows = co_await read_nodes(pool, sql::kChainHolder, chain_id, node, silence.count());
  co_return read_holder(rows, {chain_id, ""});
}

// Without a live node there is nothing to say: every signer would be without a leader.
const Statement sql::kUnledWork{"tx_unled_work", R"(
  WITH alive AS MATERIALIZED (
    SELECT n.node_id, n.says_abilities
      FROM cluster_node AS n
     WHERE )" FENCEPOST_ALIVE("n", "$1") R"(
  ),
  busy AS MATERIALIZED (
    SELECT l.chain_id, l.signer,
           greatest(l.expires_at, l.renewed_at) <= clock_timestamp() - make_interval(secs => $3 / 1000.0) AS leaderless
      FROM signer_lease AS l
     WHERE )" FENCEPOST_HAS_WORK("l") R"(
  ),
  unled AS MATERIALIZED (
    SELECT l.chain_id, l.signer,
           CASE WHEN NOT a.has_chain THEN 'chain_not_configured'
                WHEN NOT a.has_key THEN 'no_key'
                ELSE 'no_leader'
            END AS reason
      FROM busy AS l
     CROSS JOIN LATERAL (SELECT bool_or(NOT alive.says_abilities OR )" FENCEPOST_HAS_CHAIN("alive", "l.chain_id") R"()
                                  AS has_chain,
                                bool_or(NOT alive.says_abilities
                                        OR ()" FENCEPOST_HAS_KEY("alive", "l.signer") R"(
                                            AND )" FENCEPOST_HAS_CHAIN("alive", "l.chain_id") R"()) AS has_key
                           FROM alive) AS a
     WHERE NOT (a.has_chain AND a.has_key) OR (a.has_key AND l.leaderless)
  )
  SELECT u.chain_id, u.signer, u.reason, w.waiting + o.open AS transactions
    FROM unled AS u
   CROSS JOIN LATERAL (SELECT c.next_creation - c.first_waiting AS waiting
                         FROM signer_nonce_cursor AS c
                        WHERE c.chain_id = u.chain_id AND c.signer = u.signer
                        LIMIT 1) AS w
   CROSS JOIN LATERAL (SELECT count(*) AS open
                         FROM (SELECT
                                 FROM tx_open AS t
                                WHERE t.chain_id = u.chain_id
                                  AND t.signer = u.signer
                                  AND (u.reason <> 'no_key' OR t.receipt_block IS NULL)
                                LIMIT 10000) AS t) AS o
   WHERE w.waiting + o.open > 0
   ORDER BY u.chain_id, u.signer
   LIMIT $2)"};

awaitable<std::vector<UnledSigner>> unled_work(pg::Pool& pool, std::chrono::milliseconds silence, std::size_t limit) {
  const auto rows = co_await read_nodes(pool, sql::kUnledWork, silence.count(), limit, kLeaderlessAfter.count());
  std::vector<UnledSigner> out;
  for (const auto row : rows) {
    out.push_back({.key = read_key(row),
                   .reason = row.get<std::string>("reason"),
                   .transactions = row.get<std::int64_t>("transactions")});
  }
  co_return out;
}

#undef FENCEPOST_ALIVE
#undef FENCEPOST_HAS_KEY
#undef FENCEPOST_HAS_CHAIN

}  // namespace fencepost::tx
