#include "tx/store/tx_store.hpp"

#include <map>
#include <set>

#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

namespace fencepost::tx {

using pg::Statement;

const Statement sql::kFindTx{"tx_find", R"(
  SELECT )" FENCEPOST_TX_COLUMNS("t") R"(,
         coalesce(
         (SELECT m.tx_id
            FROM signer_nonce_cursor AS c
            JOIN managed_tx AS m ON m.chain_id = c.chain_id AND m.signer = c.signer AND m.nonce = c.gap_nonce
           WHERE c.chain_id = t.chain_id AND c.signer = t.signer
             AND (t.nonce IS NULL OR c.gap_nonce < t.nonce)
             AND t.confirmed_at IS NULL
           LIMIT 1),
         (SELECT b.tx_id
            FROM tx_open AS b
           WHERE b.chain_id = t.chain_id AND b.signer = t.signer
             AND (b.state = 'STUCK' OR (b.state = 'ALLOCATED' AND b.retry_count > 0))
             AND (t.nonce IS NULL OR b.nonce < t.nonce)
             AND b.receipt_block IS NULL
             AND t.confirmed_at IS NULL
           ORDER BY b.nonce
           LIMIT 1)) AS blocked_by
    FROM tx_view AS t
   WHERE t.tx_id = $1)"};

awaitable<std::optional<ManagedTx>> find_tx(pg::Pool& pool, Uuid tx_id) {
  const auto rows = co_await pool.query(sql::kFindTx, tx_id);
  if (rows.empty()) co_return std::nullopt;
  auto tx = read_managed_tx(rows.one());
  tx.blocked_by = rows.one().get<std::optional<Uuid>>("blocked_by");
  co_return tx;
}

constexpr Statement kFindTxAt{"tx_find_at", R"(
  SELECT tx_id FROM managed_tx WHERE chain_id = $1 AND signer = $2 AND nonce = $3)"};

awaitable<std::optional<Uuid>> find_tx_at(pg::Pool& pool, SignerKey key, std::int64_t nonce) {
  const auto rows = co_await pool.query(kFindTxAt, key.chain_id, key.signer, nonce);
  if (rows.empty()) co_return std::nullopt;
  co_return rows.one().get<Uuid>("tx_id");
}

const Statement sql::kFindRequests{"tx_find_requests", R"(
  SELECT w.ord, t.payload_hash, )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS w(chain_id, signer, request_id, ord)
   CROSS JOIN LATERAL (SELECT *
                         FROM tx_view AS t
                        WHERE t.chain_id = w.chain_id AND t.signer = w.signer AND t.request_id = w.request_id
                        LIMIT 1) AS t)"};

awaitable<std::vector<std::optional<FoundRequest>>> find_requests(pg::Pool& pool, std::vector<RequestLookup> lookups) {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers, requests;
  for (const auto& lookup : lookups) {
    chains.push_back(lookup.key.chain_id);
    signers.push_back(lookup.key.signer);
    requests.push_back(lookup.request_id);
  }
  const auto rows = co_await pool.query(sql::kFindRequests, chains, signers, requests);
  std::vector<std::optional<FoundRequest>> out(lookups.size());
  for (const auto row : rows) {
    const auto hash = row.get<pg::Bytes>("payload_hash");
    out[row.get<std::size_t>("ord") - 1] =
        FoundRequest{read_managed_tx(row), std::string(reinterpret_cast<const char*>(hash.data()), hash.size())};
  }
  co_return out;
}

const Statement sql::kFindHashes{"tx_find_hashes", R"(
  SELECT t.tx_id, t.state, t.tx_hash, t.error_message
    FROM unnest($1::uuid[]) AS w(tx_id)
   CROSS JOIN LATERAL (SELECT * FROM tx_view AS t WHERE t.tx_id = w.tx_id LIMIT 1) AS t)"};

awaitable<std::vector<HashView>> find_hashes(pg::Pool& pool, std::vector<Uuid> tx_ids) {
  const auto rows = co_await pool.query(sql::kFindHashes, tx_ids);
  std::vector<HashView> out;
  for (const auto row : rows) {
    out.push_back({.tx_id = row.get<Uuid>("tx_id"),
                   .state = read_state(row),
                   .tx_hash = row.get<std::optional<std::string>>("tx_hash"),
                   .error_message = row.get<std::optional<std::string>>("error_message")});
  }
  co_return out;
}

// The hash in the view is that of the attempt that was mined.
const Statement sql::kFindAttempt{"tx_find_attempt", R"(
  SELECT t.signer, a.raw, CASE WHEN t.tx_hash = a.tx_hash THEN t.receipt::text END AS receipt
    FROM tx_attempt AS a
   CROSS JOIN LATERAL (SELECT * FROM tx_view AS t WHERE t.tx_id = a.tx_id LIMIT 1) AS t
   WHERE a.chain_id = $1 AND a.tx_hash = $2)"};

awaitable<std::optional<AttemptRecord>> find_attempt(pg::Pool& pool, std::int64_t chain_id, std::string tx_hash) {
  const auto rows = co_await pool.query(sql::kFindAttempt, chain_id, tx_hash);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  AttemptRecord out{.signer = row.get<std::string>("signer"),
                    .raw = std::nullopt,
                    .receipt = row.get<std::optional<std::string>>("receipt")};
  if (const auto raw = row.get<std::optional<pg::Bytes>>("raw")) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(raw->data());
    out.raw.emplace(first, first + raw->size());
  }
  co_return out;
}

const Statement sql::kFindNextNonce{"tx_find_next_nonce", R"(
  SELECT next_nonce, first_waiting < next_creation AS waiting
    FROM signer_nonce_cursor
   WHERE chain_id = $1 AND signer = $2 AND next_nonce IS NOT NULL)"};

awaitable<std::optional<NextNonce>> find_next_nonce(pg::Pool& pool, SignerKey key) {
  const auto rows = co_await pool.query(sql::kFindNextNonce, key.chain_id, key.signer);
  if (rows.empty()) co_return std::nullopt;
  co_return NextNonce{rows.one().get<std::int64_t>("next_nonce"), rows.one().get<bool>("waiting")};
}

// One statement for each table that knows the answer: no single plan is good for every combination of filters.
#define FENCEPOST_LIST_FILTERS                                                                                     \
  "($1::bigint IS NULL OR t.chain_id = $1) AND ($4::text[] IS NULL OR t.signer = ANY ($4)) AND ($5::uuid IS NULL " \
  "OR t.tx_id < $5)"

const Statement sql::kList{"tx_list", R"(
  SELECT )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM tx_view AS t
   WHERE )" FENCEPOST_LIST_FILTERS R"(
     AND ($2::text IS NULL OR t.signer = $2)
     AND ($3::text IS NULL OR t.state = $3)
   ORDER BY t.tx_id DESC
   LIMIT $6)"};

const Statement sql::kListOfSigner{"tx_list_of_signer", R"(
  SELECT )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM tx_view AS t
   WHERE )" FENCEPOST_LIST_FILTERS R"(
     AND t.signer = $2
     AND ($3::text IS NULL OR t.state = $3)
   ORDER BY t.signer DESC, t.tx_id DESC
   LIMIT $6)"};

// The newest of a set that is read as a whole, because it is small: what waits, or what is open.
#define FENCEPOST_LIST_PAGE(source, state) \
  "WITH page AS MATERIALIZED ( SELECT t.tx_id FROM " source " AS t WHERE " FENCEPOST_LIST_FILTERS                    \
  " AND ($2::text IS NULL OR t.signer = $2) AND " state " ORDER BY t.tx_id DESC LIMIT $6 ) SELECT "                  \
  FENCEPOST_TX_COLUMNS("t")                                                                                          \
  " FROM page CROSS JOIN LATERAL (SELECT * FROM tx_view AS t WHERE t.tx_id = page.tx_id LIMIT 1) AS t ORDER BY "     \
  "t.tx_id DESC"

const Statement sql::kListWaiting{"tx_list_waiting",
                                  FENCEPOST_LIST_PAGE("managed_tx", FENCEPOST_WAITS("t") " AND $3 = 'CREATED'")};
const Statement sql::kListOpen{"tx_list_open", FENCEPOST_LIST_PAGE("tx_open", "t.state = $3")};

// The newest of those that have ended.
#define FENCEPOST_LIST_ENDED(state) \
  R"(
  SELECT )" FENCEPOST_TX_COLUMNS("t") R"(
    FROM tx_ended AS e
   CROSS JOIN LATERAL (SELECT * FROM tx_view AS t WHERE t.tx_id = e.tx_id LIMIT 1) AS t
   WHERE e.state = ')" state R"('
     AND ($5::uuid IS NULL OR e.tx_id < $5)
     AND )" FENCEPOST_LIST_FILTERS R"(
     AND ($2::text IS NULL OR t.signer = $2)
     AND t.state = $3
   ORDER BY e.tx_id DESC
   LIMIT $6)"
const Statement sql::kListConfirmed{"tx_list_confirmed", FENCEPOST_LIST_ENDED("CONFIRMED")};
const Statement sql::kListFailed{"tx_list_failed", FENCEPOST_LIST_ENDED("FAILED_FINAL")};
#undef FENCEPOST_LIST_ENDED

namespace {

const Statement& list_statement(const TxFilter& filter) {
  const auto& state = filter.state;
  if (state == "CREATED") return sql::kListWaiting;
  if (state == "ALLOCATED" || state == "TRACKING" || state == "STUCK") return sql::kListOpen;
  if (state == "FAILED_FINAL") return sql::kListFailed;
  if (filter.signer) return sql::kListOfSigner;
  return state == "CONFIRMED" ? sql::kListConfirmed : sql::kList;
}

}  // namespace

// As kFindTx, for the signers of a page. Reads a bounded part of the work that has no receipt: a transaction that is
// further behind waits for thousands of others anyway.
const Statement sql::kBlockers{"tx_blockers", R"(
  SELECT w.chain_id, w.signer, b.tx_id, b.nonce, g.tx_id AS gap_tx_id, c.gap_nonce
    FROM unnest($1::bigint[], $2::text[]) AS w(chain_id, signer)
   CROSS JOIN LATERAL (SELECT c.first_unmined, c.gap_nonce
                         FROM signer_nonce_cursor AS c
                        WHERE c.chain_id = w.chain_id AND c.signer = w.signer
                        LIMIT 1) AS c
    LEFT JOIN LATERAL (SELECT m.tx_id
                         FROM managed_tx AS m
                        WHERE m.chain_id = w.chain_id AND m.signer = w.signer AND m.nonce = c.gap_nonce
                        LIMIT 1) AS g ON true
    LEFT JOIN LATERAL (SELECT t.tx_id, t.nonce
                         FROM (SELECT *
                                 FROM tx_open AS t
                                WHERE t.chain_id = w.chain_id
                                  AND t.signer = w.signer
                                  AND t.nonce >= c.first_unmined
                                ORDER BY t.nonce
                                LIMIT 1000) AS t
                        WHERE (t.state = 'STUCK' OR (t.state = 'ALLOCATED' AND t.retry_count > 0))
                          AND t.receipt_block IS NULL
                        ORDER BY t.nonce
                        LIMIT 1) AS b ON true)"};

namespace {

struct Blocker {
  std::optional<Uuid> tx_id;
  std::optional<std::int64_t> nonce;

  bool blocks(const ManagedTx& tx) const { return tx_id && (!tx.nonce || *nonce < *tx.nonce); }
};
struct Blockers {
  Blocker gap;  // what had the nonce that nothing has now
  Blocker open;
};

awaitable<> name_blockers(pg::Pool& pool, std::vector<ManagedTx>& page) {
  std::set<SignerKey> keys;
  for (const auto& tx : page) {
    if (!kManagedTx.terminal(tx.state)) keys.insert(tx.key);
  }
  if (keys.empty()) co_return;
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  for (const auto& key : keys) {
    chains.push_back(key.chain_id);
    signers.push_back(key.signer);
  }
  const auto rows = co_await pool.query(sql::kBlockers, chains, signers);
  std::map<SignerKey, Blockers> blockers;
  for (const auto row : rows) {
    blockers[read_key(row)] = {
        .gap = {row.get<std::optional<Uuid>>("gap_tx_id"), row.get<std::optional<std::int64_t>>("gap_nonce")},
        .open = {row.get<std::optional<Uuid>>("tx_id"), row.get<std::optional<std::int64_t>>("nonce")}};
  }
  for (auto& tx : page) {
    const auto found = blockers.find(tx.key);
    if (found == blockers.end() || kManagedTx.terminal(tx.state)) continue;
    const auto& [gap, open] = found->second;
    if (gap.blocks(tx)) {
      tx.blocked_by = gap.tx_id;
    } else if (open.blocks(tx)) {
      tx.blocked_by = open.tx_id;
    }
  }
}

}  // namespace

awaitable<std::vector<ManagedTx>> list_txs(pg::Pool& pool, TxFilter filter) {
  const auto& statement = list_statement(filter);
  const auto rows = co_await pool.query(statement, filter.chain_id, filter.signer, filter.state, filter.allowed_signers,
                                        filter.before, filter.limit);
  std::vector<ManagedTx> out;
  for (const auto row : rows) out.push_back(read_managed_tx(row));
  co_await name_blockers(pool, out);
  co_return out;
}

const Statement sql::kListAttempts{"tx_attempts", R"(
  SELECT tx_hash, attempt, kind, fees, outcome, message, created_at
    FROM tx_attempt
   WHERE tx_id = $1
   ORDER BY attempt)"};

awaitable<std::vector<AttemptView>> list_attempts(pg::Pool& pool, Uuid tx_id) {
  const auto rows = co_await pool.query(sql::kListAttempts, tx_id);
  std::vector<AttemptView> out;
  for (const auto row : rows) {
    out.push_back({.tx_hash = row.get<std::string>("tx_hash"),
                   .attempt = row.get<std::int32_t>("attempt"),
                   .kind = read_attempt_kind(row, "kind"),
                   .fees = row.get<std::optional<boost::json::value>>("fees"),
                   .outcome = read_attempt_outcome(row),
                   .message = row.get<std::optional<std::string>>("message"),
                   .created_at = row.get<TimePoint>("created_at")});
  }
  co_return out;
}

const Statement sql::kListSigners{"tx_signers", R"(
  SELECT l.chain_id, l.signer, l.fencing_token,
         CASE WHEN l.expires_at > clock_timestamp() THEN l.owner_node ELSE '' END AS leader,
         c.next_nonce, c.chain_nonce, c.gap_nonce,
         CASE WHEN c.needs_reconcile THEN coalesce(c.reconcile_reason, 'chain_ahead') END AS reconcile_reason,
         coalesce(o.counts, '{}') AS counts, o.oldest
    FROM signer_lease AS l
    LEFT JOIN signer_nonce_cursor AS c USING (chain_id, signer)
    LEFT JOIN LATERAL (
           SELECT jsonb_object_agg(s.state, s.n) AS counts, min(s.oldest) AS oldest
             FROM (SELECT t.state, count(*) AS n, min(m.created_at) AS oldest
                     FROM tx_open AS t
                    CROSS JOIN LATERAL (SELECT m.created_at FROM managed_tx AS m WHERE m.tx_id = t.tx_id LIMIT 1) AS m
                    WHERE t.chain_id = l.chain_id AND t.signer = l.signer
                    GROUP BY t.state
                    UNION ALL
                   SELECT 'CREATED', count(*), min(m.created_at)
                     FROM managed_tx AS m
                    WHERE m.chain_id = l.chain_id AND m.signer = l.signer AND )" FENCEPOST_WAITS("m") R"(
                      AND m.creation_seq >= c.first_waiting
                   HAVING count(*) > 0) AS s) AS o ON true
   WHERE $1::text[] IS NULL OR l.signer = ANY ($1)
   ORDER BY l.chain_id, l.signer
   LIMIT 10000)"};

awaitable<std::vector<SignerView>> list_signers(pg::Pool& pool, std::optional<std::vector<std::string>> allowed) {
  const auto rows = co_await pool.query(sql::kListSigners, allowed);
  std::vector<SignerView> out;
  for (const auto row : rows) {
    out.push_back({.key = read_key(row),
                   .leader = row.get<std::string>("leader"),
                   .fencing_token = row.get<std::int64_t>("fencing_token"),
                   .next_nonce = row.get<std::optional<std::int64_t>>("next_nonce"),
                   .chain_nonce = row.get<std::optional<std::int64_t>>("chain_nonce"),
                   .reason = read_reconcile_reason(row),
                   .gap_nonce = row.get<std::optional<std::int64_t>>("gap_nonce"),
                   .counts = row.get<boost::json::value>("counts"),
                   .oldest_open = row.get<std::optional<TimePoint>>("oldest")});
  }
  co_return out;
}

// Counts the line by its ends: a million may wait. A nonce that an operator filled meanwhile is counted with them.
const Statement sql::kBacklogs{"tx_backlogs", R"(
  SELECT l.chain_id, l.signer, w.created, o.allocated, o.tracking, o.stuck, o.without_receipt, o.above_ceiling,
         extract(epoch FROM clock_timestamp() - least(w.oldest, o.oldest))::double precision AS oldest
    FROM signer_lease AS l
   CROSS JOIN LATERAL (SELECT c.first_waiting, c.next_creation
                         FROM signer_nonce_cursor AS c
                        WHERE c.chain_id = l.chain_id AND c.signer = l.signer
                        LIMIT 1) AS c
   CROSS JOIN LATERAL (SELECT c.next_creation - c.first_waiting AS created,
                              (SELECT m.created_at
                                 FROM managed_tx AS m
                                WHERE m.chain_id = l.chain_id AND m.signer = l.signer AND )" FENCEPOST_WAITS("m") R"(
                                  AND m.creation_seq >= c.first_waiting
                                ORDER BY m.creation_seq
                                LIMIT 1) AS oldest) AS w
   CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE t.state = 'ALLOCATED') AS allocated,
                              count(*) FILTER (WHERE t.state = 'TRACKING') AS tracking,
                              count(*) FILTER (WHERE t.state = 'STUCK') AS stuck,
                              count(*) FILTER (WHERE t.state <> 'ALLOCATED' AND t.receipt_block IS NULL)
                                AS without_receipt,
                              count(*) FILTER (WHERE t.state = 'ALLOCATED' AND t.sub_state = 'fee_above_ceiling')
                                AS above_ceiling,
                              min(m.created_at) AS oldest
                         FROM tx_open AS t
                        CROSS JOIN LATERAL (SELECT m.created_at FROM managed_tx AS m WHERE m.tx_id = t.tx_id LIMIT 1)
                           AS m
                        WHERE t.chain_id = l.chain_id AND t.signer = l.signer) AS o
   WHERE l.owner_node = $1
     AND l.chain_id = $2
     AND (w.oldest IS NOT NULL OR o.oldest IS NOT NULL))"};

awaitable<std::vector<Backlog>> backlogs(pg::Pool& pool, std::string node, std::int64_t chain_id) {
  const auto rows = co_await pool.query(sql::kBacklogs, node, chain_id);
  std::vector<Backlog> out;
  for (const auto row : rows) {
    out.push_back({.key = read_key(row),
                   .created = row.get<std::int64_t>("created"),
                   .allocated = row.get<std::int64_t>("allocated"),
                   .tracking = row.get<std::int64_t>("tracking"),
                   .stuck = row.get<std::int64_t>("stuck"),
                   .without_receipt = row.get<std::int64_t>("without_receipt"),
                   .above_ceiling = row.get<std::int64_t>("above_ceiling"),
                   .oldest_age_seconds = row.get<double>("oldest")});
  }
  co_return out;
}

}  // namespace fencepost::tx
