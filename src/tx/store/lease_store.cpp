#include "tx/store/lease_store.hpp"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>

#include "pg/error.hpp"
#include "runtime/completion.hpp"
#include "runtime/log.hpp"
#include "tx/store/fence.hpp"
#include "tx/store/read_row.hpp"
#include "tx/store/sql_parts.hpp"

#include "cluster/node_table.hpp"

namespace fencepost::tx {

using pg::Statement;

namespace {

std::vector<SignerLease> read_leases(const pg::ResultSet& rows) {
  std::vector<SignerLease> leases;
  for (const auto row : rows) leases.push_back({read_key(row), row.get<std::int64_t>("fencing_token")});
  return leases;
}

std::vector<SignerKey> read_keys(const pg::ResultSet& rows) {
  std::vector<SignerKey> keys;
  for (const auto row : rows) keys.push_back(read_key(row));
  return keys;
}

}  // namespace

// Finds the sessions that block the backend, directly or through others, and do not wait for a lock themselves: a
// session that waits may be another node that wants the same lease. Terminates only sessions of nodes. A psql session
// that holds a lock is left to the operator.
const Statement sql::kTerminateBlockers{"tx_lease_terminate_blockers", R"(
  WITH RECURSIVE blocking(pid) AS (
    SELECT unnest(pg_blocking_pids($1::integer))
     UNION
    SELECT unnest(pg_blocking_pids(b.pid)) FROM blocking AS b
  )
  SELECT a.pid, a.application_name,
         CASE WHEN a.application_name IN (SELECT node_id FROM cluster_node UNION SELECT owner_node FROM signer_lease)
              THEN pg_terminate_backend(a.pid)
              ELSE false
         END AS ended
    FROM blocking AS b
    JOIN pg_stat_activity AS a USING (pid)
   WHERE a.wait_event_type IS DISTINCT FROM 'Lock')"};

namespace {

constexpr auto kPatience = std::chrono::milliseconds(1000);  // time for writers of the expired owner to finish

// A takeover that may have to wait, and the sessions that its watcher finds.
struct Takeover {
  explicit Takeover(Executor executor) : over(executor), unwatched(executor) {}
  Completion<bool> over;       // the takeover succeeded or failed
  Completion<bool> unwatched;  // the watcher has ended
  std::string in_the_way;      // blocking sessions that do not belong to a node, as text
};

// Terminates the node sessions that block `backend`. Returns the other blocking sessions as text; empty: there are
// none.
awaitable<std::string> end_blockers(pg::Pool& pool, int backend) {
  const auto blockers = co_await cluster::read_nodes(pool, sql::kTerminateBlockers, backend);
  std::string others;
  for (const auto row : blockers) {
    const auto pid = row.get<std::int64_t>("pid");
    const auto application = row.get<std::string_view>("application_name");
    if (row.get<bool>("ended")) {
      log::warn("terminated a database session that held a lock on an expired lease",
                {{"pid", pid}, {"application", application}});
    } else {
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", pid, application);
    }
  }
  co_return others;
}

// Runs beside a takeover, because the waiting session cannot ask which session it waits for. Repeats, because
// PostgreSQL names only the first session that holds a row, and a stopped node may have several.
awaitable<> watch_takeover(pg::Pool& pool, int backend, std::shared_ptr<Takeover> takeover) {
  auto patience = kPatience;
  while (!co_await takeover->over.wait(std::chrono::steady_clock::now() + patience)) {
    takeover->in_the_way = co_await end_blockers(pool, backend);
    patience = kPatience / 5;
  }
}

// Throws as Connection::run, or kUnavailable `lease_locked` when a session that does not belong to a node blocks it.
awaitable<pg::ResultSet> take_over(pg::Pool& pool, const pg::Batch& batch) {
  const auto connection = co_await pool.acquire();
  const auto executor = co_await this_executor();
  const auto takeover = std::make_shared<Takeover>(executor);
  asio::co_spawn(executor, watch_takeover(pool, connection->backend_pid(), takeover),
                 [takeover](const std::exception_ptr& failure) {
                   if (failure)
                     log::warn("could not terminate the sessions that hold a lock on a lease", error_of(failure));
                   takeover->unwatched.complete(true);
                 });
  std::vector<pg::ResultSet> results;
  std::exception_ptr failure;
  try {
    results = co_await connection->run(batch);
  } catch (const pg::QueryError& e) {
    failure = std::current_exception();
    if (e.is_timeout() && !takeover->in_the_way.empty()) {
      failure = std::make_exception_ptr(Exception(
          unavailable(std::string(kLeaseLocked),
                      "a database session that does not belong to a node holds a lock on the lease; end that session")
              .with("sessions", takeover->in_the_way)
              .because(e.error().message)));
    }
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  takeover->over.complete(true);
  co_await takeover->unwatched.wait();  // the watcher uses the pool, which may be destroyed after this returns
  if (failure) std::rethrow_exception(failure);
  co_return std::move(results.back());
}

}  // namespace

const Statement sql::kPrepareLeases{"tx_lease_prepare", R"(
  INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT $1, s, '', 0, '-infinity'
    FROM unnest($2::text[]) AS s
   ORDER BY s
      ON CONFLICT DO NOTHING)"};

const Statement sql::kPrepareCursors{"tx_cursor_prepare", R"(
  INSERT INTO signer_nonce_cursor (chain_id, signer)
  SELECT $1, s
    FROM unnest($2::text[]) AS s
   ORDER BY s
      ON CONFLICT DO NOTHING)"};

// FOR UPDATE waits for every open transaction that has passed the fence (FOR KEY SHARE); a plain UPDATE would not.
// After a wait, PostgreSQL checks the conditions again on the current row.
const Statement sql::kAcquireLeases{"tx_lease_acquire", R"(
  WITH free AS MATERIALIZED (
    SELECT chain_id,
           signer,
           owner_node = $1 AND expires_at > clock_timestamp() - make_interval(secs => $5 / 1000.0) AS mine
      FROM signer_lease
     WHERE chain_id = $2
       AND signer = ANY ($3::text[])
       AND (owner_node = $1 OR expires_at <= clock_timestamp() - make_interval(secs => $5 / 1000.0))
     ORDER BY chain_id, signer
       FOR UPDATE
  )
  UPDATE signer_lease AS l
     SET owner_node = $1,
         fencing_token = l.fencing_token + CASE WHEN free.mine THEN 0 ELSE 1 END,
         expires_at = clock_timestamp() + make_interval(secs => $4 / 1000.0),
         renewed_at = clock_timestamp()
    FROM free
   WHERE l.chain_id = free.chain_id
     AND l.signer = free.signer
  RETURNING l.chain_id, l.signer, l.fencing_token, NOT free.mine AS taken)"};

// Makes the former owner's open transactions due now, also a cancel that it may have claimed and not sent. Skips locked
// rows: another session works on them, and waiting for them here could deadlock.
const Statement sql::kMakeDue{"tx_lease_make_due", R"(
  WITH left_open AS MATERIALIZED (
    SELECT tx_id
      FROM tx_open
     WHERE chain_id = $1
       AND signer = ANY ($2::text[])
       AND receipt_block IS NULL
       FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE tx_open
     SET next_resubmit_at = CASE WHEN state = 'ALLOCATED' OR sub_state = 'cancelling' THEN clock_timestamp()
                                 ELSE next_resubmit_at
                            END,
         last_receipt_check = NULL
   WHERE tx_id = ANY (ARRAY(SELECT tx_id FROM left_open)))"};

awaitable<std::vector<SignerLease>> acquire_leases(pg::Pool& pool, std::string node, std::int64_t chain_id,
                                                   std::vector<std::string> signers, LeaseTimes times) {
  pg::Batch batch;
  batch.lock_timeout(3 * kPatience);
  batch.add(sql::kPrepareLeases, chain_id, signers).add(sql::kPrepareCursors, chain_id, signers);
  batch.add(sql::kAcquireLeases, node, chain_id, signers, times.duration.count(), times.clock_skew_allowance.count());
  const auto rows = co_await take_over(pool, batch);
  std::vector<std::string> taken;
  for (const auto row : rows) {
    if (row.get<bool>("taken")) taken.push_back(row.get<std::string>("signer"));
  }
  if (!taken.empty()) co_await pool.execute(sql::kMakeDue, chain_id, taken);
  co_return read_leases(rows);
}

// FOR NO KEY UPDATE does not conflict with writers (KEY SHARE). SKIP LOCKED skips a row that another node is taking
// over, so that one takeover does not delay the renewal of all other leases.
const Statement sql::kRenewLeases{"tx_lease_renew", R"(
  WITH mine AS MATERIALIZED (
    SELECT l.chain_id, l.signer
      FROM signer_lease AS l
      JOIN unnest($2::bigint[], $3::text[], $4::bigint[]) AS w(chain_id, signer, token)
        ON w.chain_id = l.chain_id AND w.signer = l.signer AND w.token = l.fencing_token
     WHERE l.owner_node = $1
       AND l.expires_at > clock_timestamp() - make_interval(secs => $6 / 1000.0)
       FOR NO KEY UPDATE OF l SKIP LOCKED
  )
  UPDATE signer_lease AS l
     SET expires_at = clock_timestamp() + make_interval(secs => $5 / 1000.0),
         renewed_at = clock_timestamp()
    FROM mine
   WHERE l.chain_id = mine.chain_id
     AND l.signer = mine.signer
  RETURNING l.chain_id, l.signer, l.fencing_token)"};

awaitable<std::vector<SignerLease>> renew_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                 LeaseTimes times) {
  const FencedLeases w(leases);
  const auto rows = co_await pool.execute(sql::kRenewLeases, node, w.chains, w.signers, w.tokens,
                                          times.duration.count(), times.clock_skew_allowance.count());
  co_return read_leases(rows);
}

// This node's open writes still hold KEY SHARE, and the next owner waits for them. Locks in key order, like every other
// statement that locks several leases, and skips a lease that another session has locked, for instance this node's own
// renewal: the caller learns which were released.
const Statement sql::kReleaseLeases{"tx_lease_release", R"(
  WITH mine AS MATERIALIZED (
    SELECT l.chain_id, l.signer
      FROM signer_lease AS l
      JOIN unnest($2::bigint[], $3::text[], $4::bigint[]) AS w(chain_id, signer, token)
        ON w.chain_id = l.chain_id AND w.signer = l.signer AND w.token = l.fencing_token
     WHERE l.owner_node = $1
     ORDER BY l.chain_id, l.signer
       FOR NO KEY UPDATE OF l SKIP LOCKED
  )
  UPDATE signer_lease AS l
     SET owner_node = '',
         expires_at = '-infinity',
         renewed_at = clock_timestamp()
    FROM mine
   WHERE l.chain_id = mine.chain_id
     AND l.signer = mine.signer
  RETURNING l.chain_id, l.signer, l.fencing_token)"};

constexpr Statement kTell{"tx_lease_tell", "SELECT pg_notify($1, '')"};

awaitable<std::vector<SignerLease>> release_leases(pg::Pool& pool, std::string node, std::vector<SignerLease> leases,
                                                   std::optional<std::chrono::milliseconds> timeout) {
  const FencedLeases w(leases);
  pg::Batch batch;
  batch.add(sql::kReleaseLeases, node, w.chains, w.signers, w.tokens).add(kTell, kLeaseChannel);
  const auto results = co_await pool.run(std::move(batch), {.timeout = timeout});
  co_return read_leases(results.front());
}

constexpr Statement kFind{"tx_lease_find", R"(
  SELECT w.ord, l.owner_node, l.fencing_token,
         l.expires_at <= clock_timestamp() - make_interval(secs => $3 / 1000.0) AS expired,
         extract(epoch FROM clock_timestamp() - l.renewed_at)::double precision AS silent_for,
         coalesce(n.advertise_url, '') AS advertise_url, n.node_id IS NOT NULL AS registered
    FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS w(chain_id, signer, ord)
    JOIN signer_lease AS l ON l.chain_id = w.chain_id AND l.signer = w.signer
    LEFT JOIN cluster_node AS n ON n.node_id = l.owner_node)"};

awaitable<std::vector<std::optional<LeaseView>>> find_leases(pg::Pool& pool, std::vector<SignerKey> keys,
                                                             LeaseTimes times) {
  std::vector<std::int64_t> chains;
  std::vector<std::string> signers;
  for (const auto& key : keys) {
    chains.push_back(key.chain_id);
    signers.push_back(key.signer);
  }
  const auto rows = co_await cluster::read_nodes(pool, kFind, chains, signers, times.clock_skew_allowance.count());
  std::vector<std::optional<LeaseView>> out(keys.size());
  for (const auto row : rows) {
    const auto i = row.get<std::size_t>("ord") - 1;
    out[i] = LeaseView{.key = keys[i],
                       .owner_node = row.get<std::string>("owner_node"),
                       .fencing_token = row.get<std::int64_t>("fencing_token"),
                       .expired = row.get<bool>("expired"),
                       .advertise_url = row.get<std::string>("advertise_url"),
                       .registered = row.get<bool>("registered"),
                       .silent_for = read_seconds(row, "silent_for").value_or(std::chrono::milliseconds(0))};
  }
  co_return out;
}

// A signer that waits for an operator needs a leader, too: only a leader notices that the operator has acted. NULL when
// the signer has no cursor.
#define FENCEPOST_NEEDS_LEADER(l)                                                                               \
  "(" FENCEPOST_HAS_WORK(l) " OR (SELECT c.needs_reconcile FROM signer_nonce_cursor AS c WHERE c.chain_id = " l \
                            ".chain_id AND c.signer = " l ".signer))"

const Statement sql::kOrphans{"tx_lease_orphans", R"(
  SELECT l.chain_id, l.signer
    FROM signer_lease AS l
   WHERE l.chain_id = ANY ($1::bigint[])
     AND l.expires_at <= clock_timestamp() - make_interval(secs => $2 / 1000.0)
     AND ($4::text IS NULL
          OR EXISTS (SELECT FROM cluster_node_signer AS k WHERE k.node_id = $4 AND k.signer = l.signer))
     AND )" FENCEPOST_NEEDS_LEADER("l") R"(
   ORDER BY random()
   LIMIT $3)"};

awaitable<std::vector<SignerKey>> find_orphans(pg::Pool& pool, std::vector<std::int64_t> chains, LeaseTimes times,
                                               std::size_t limit, std::optional<std::string> node) {
  const auto rows = co_await pool.query(sql::kOrphans, chains, times.clock_skew_allowance.count(), limit, node);
  co_return read_keys(rows);
}

const Statement sql::kIdle{"tx_lease_idle", R"(
  SELECT w.chain_id, w.signer
    FROM unnest($1::bigint[], $2::text[]) AS w(chain_id, signer)
   WHERE )" FENCEPOST_NEEDS_LEADER("w") R"( IS NOT true)"};

awaitable<std::vector<SignerKey>> idle_signers(pg::Pool& pool, std::vector<SignerLease> leases) {
  const FencedLeases w(leases);
  const auto rows = co_await pool.query(sql::kIdle, w.chains, w.signers);
  co_return read_keys(rows);
}

}  // namespace fencepost::tx
