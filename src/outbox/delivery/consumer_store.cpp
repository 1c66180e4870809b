#include "outbox/delivery/consumer_store.hpp"

namespace fencepost::outbox {

using pg::Statement;

namespace {

// The columns of reports, for unnest.
struct ReportColumns {
  explicit ReportColumns(const std::vector<ClaimReport>& reports) {
    for (const auto& report : reports) {
      consumers.push_back(report.claim.consumer);
      tokens.push_back(report.claim.token);
      positions.push_back(report.position);
      failures.push_back(report.failure);
    }
  }
  std::vector<std::string> consumers;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> positions;
  std::vector<std::optional<std::string>> failures;
};

}  // namespace

std::string_view kind_of(std::string_view consumer) {
  return consumer.substr(0, consumer.find('/'));
}

const Statement sql::kAddConsumer{"event_consumer_add", R"(
  INSERT INTO event_consumer (consumer, position)
  VALUES ($1, $2)
      ON CONFLICT DO NOTHING)"};

const Statement sql::kSetConsumerActive{"event_consumer_set_active", R"(
  UPDATE event_consumer
     SET active = $2,
         revision = revision + 1,
         failing_since = NULL,
         last_error = NULL,
         updated_at = clock_timestamp()
   WHERE consumer = $1)"};

const Statement sql::kTouchConsumer{"event_consumer_touch", R"(
  UPDATE event_consumer
     SET revision = revision + 1,
         updated_at = clock_timestamp()
   WHERE consumer = $1)"};

const Statement sql::kRemoveConsumer{"event_consumer_remove", "DELETE FROM event_consumer WHERE consumer = $1"};

const Statement sql::kAnnounceConsumers{"event_consumer_announce", "SELECT pg_notify('event_consumer', '')"};

awaitable<> add_consumer(pg::Pool& pool, std::string consumer, std::int64_t position) {
  pg::Batch batch;
  batch.add(sql::kAddConsumer, consumer, position).add(sql::kAnnounceConsumers);
  co_await pool.run(std::move(batch));
}

awaitable<> remove_consumer(pg::Pool& pool, std::string consumer) {
  pg::Batch batch;
  batch.add(sql::kRemoveConsumer, consumer).add(sql::kAnnounceConsumers);
  co_await pool.run(std::move(batch));
}

// Nodes that take at the same moment get different rows: each skips what another has locked. The conditions are checked
// again on the locked row, so a claim that was renewed meanwhile stays with its owner.
const Statement sql::kTakeClaims{"event_consumer_take", R"(
  WITH free AS MATERIALIZED (
    SELECT consumer
      FROM event_consumer
     WHERE kind = $2
       AND active
       AND claimed_until <= clock_timestamp()
     ORDER BY claimed_until, consumer
     LIMIT $3
       FOR UPDATE SKIP LOCKED
  )
  UPDATE event_consumer AS c
     SET owner_node = $1,
         claim_token = c.claim_token + 1,
         claimed_until = clock_timestamp() + make_interval(secs => $4 / 1000.0),
         updated_at = clock_timestamp()
    FROM free
   WHERE c.consumer = free.consumer
  RETURNING c.consumer, c.claim_token, c.revision, c.position)"};

awaitable<std::vector<TakenClaim>> take_claims(pg::Pool& pool, std::string node, std::string kind, std::size_t limit,
                                               std::chrono::milliseconds duration) {
  const auto rows = co_await pool.execute(sql::kTakeClaims, node, kind, limit, duration.count());
  std::vector<TakenClaim> taken;
  for (const auto row : rows) {
    taken.push_back({.claim = {.consumer = row.get<std::string>("consumer"),
                               .node = node,
                               .token = row.get<std::int64_t>("claim_token"),
                               .revision = row.get<std::int64_t>("revision")},
                     .position = row.get<std::int64_t>("position")});
  }
  co_return taken;
}

namespace {

constexpr Statement kStayAlive{"event_worker_stay_alive", R"(
  INSERT INTO event_worker (node_id, kinds, alive_until)
  VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3 / 1000.0))
      ON CONFLICT (node_id) DO UPDATE SET kinds = excluded.kinds, alive_until = excluded.alive_until)"};

// Rows of dead nodes only take space: they do not count from `alive_until` on.
constexpr Statement kForgetDeadWorkers{"event_worker_forget_dead", R"(
  DELETE FROM event_worker
   WHERE node_id IN (SELECT node_id
                       FROM event_worker
                      WHERE alive_until < clock_timestamp() - interval '1 minute'
                        FOR UPDATE SKIP LOCKED))"};

constexpr Statement kWorkerKinds{"event_worker_kinds", R"(
  SELECT unnest(kinds) AS kind
    FROM event_worker
   WHERE alive_until > clock_timestamp())"};

constexpr Statement kOverview{"event_consumer_overview", R"(
  SELECT consumer, active, revision, position, owner_node, claim_token,
         claimed_until > clock_timestamp() AS claimed,
         CASE WHEN isfinite(claimed_until)
              THEN (1000 * extract(epoch FROM claimed_until - clock_timestamp()))::bigint
              ELSE 0
         END AS claimed_for_ms,
         failing_since, last_error
    FROM event_consumer
   ORDER BY consumer
   LIMIT $1)"};

}  // namespace

// Skips a row that another session has locked: an advance of this node, which renews the claim itself, or a change of
// the consumer, which is short. Waiting would delay the renewal of all other claims.
const Statement sql::kRenewClaims{"event_consumer_renew", R"(
  WITH mine AS MATERIALIZED (
    SELECT c.consumer, w.position, w.failure
      FROM event_consumer AS c
      JOIN unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[]) AS w(consumer, token, position, failure)
        ON w.consumer = c.consumer AND w.token = c.claim_token
     WHERE c.owner_node = $1
       AND c.claimed_until > clock_timestamp()
       FOR NO KEY UPDATE OF c SKIP LOCKED
  )
  UPDATE event_consumer AS c
     SET claimed_until = clock_timestamp() + make_interval(secs => $6 / 1000.0),
         position = greatest(c.position, mine.position),
         position_at = CASE WHEN mine.position > c.position THEN clock_timestamp() ELSE c.position_at END,
         failing_since = CASE WHEN mine.failure IS NOT NULL THEN coalesce(c.failing_since, clock_timestamp()) END,
         last_error = mine.failure,
         updated_at = clock_timestamp()
    FROM mine
   WHERE c.consumer = mine.consumer)"};

awaitable<ConsumerOverview> renew_claims(pg::Pool& pool, std::string node, std::vector<std::string> kinds,
                                         std::vector<ClaimReport> reports, std::chrono::milliseconds duration) {
  const ReportColumns w(reports);
  pg::Batch batch;
  batch.add(kStayAlive, node, kinds, duration.count()).add(kForgetDeadWorkers);
  batch.add(sql::kRenewClaims, node, w.consumers, w.tokens, w.positions, w.failures, duration.count());
  batch.add(kWorkerKinds).add(kOverview, kMaxConsumers);
  const auto results = co_await pool.run(std::move(batch));
  ConsumerOverview overview;
  for (const auto row : results[3]) overview.worker_kinds.push_back(row.get<std::string>("kind"));
  for (const auto row : results[4]) {
    overview.consumers.push_back({.consumer = row.get<std::string>("consumer"),
                                  .active = row.get<bool>("active"),
                                  .revision = row.get<std::int64_t>("revision"),
                                  .position = row.get<std::int64_t>("position"),
                                  .owner_node = row.get<std::string>("owner_node"),
                                  .token = row.get<std::int64_t>("claim_token"),
                                  .claimed = row.get<bool>("claimed"),
                                  .claimed_for = std::chrono::milliseconds(row.get<std::int64_t>("claimed_for_ms")),
                                  .failing_since = row.get<std::optional<TimePoint>>("failing_since"),
                                  .last_error = row.get<std::optional<std::string>>("last_error")});
  }
  co_return overview;
}

// An advance renews the claim, too: a busy consumer's row may be locked whenever the renewal of all claims runs.
const Statement sql::kAdvance{"event_consumer_advance", R"(
  UPDATE event_consumer
     SET position = $4,
         position_at = clock_timestamp(),
         claimed_until = clock_timestamp() + make_interval(secs => $5 / 1000.0),
         updated_at = clock_timestamp()
   WHERE consumer = $1
     AND owner_node = $2
     AND claim_token = $3
     AND claimed_until > clock_timestamp()
     AND position <= $4)"};

awaitable<bool> advance(pg::Pool& pool, Claim claim, std::int64_t position, std::chrono::milliseconds duration) {
  const auto done =
      co_await pool.execute(sql::kAdvance, claim.consumer, claim.node, claim.token, position, duration.count());
  co_return done.affected() == 1;
}

namespace {

constexpr Statement kReleaseClaims{"event_consumer_release", R"(
  WITH mine AS MATERIALIZED (
    SELECT c.consumer, w.position
      FROM event_consumer AS c
      JOIN unnest($2::text[], $3::bigint[], $4::bigint[]) AS w(consumer, token, position)
        ON w.consumer = c.consumer AND w.token = c.claim_token
     WHERE c.owner_node = $1
     ORDER BY c.consumer
       FOR NO KEY UPDATE OF c
  )
  UPDATE event_consumer AS c
     SET owner_node = '',
         claimed_until = '-infinity',
         position = greatest(c.position, mine.position),
         updated_at = clock_timestamp()
    FROM mine
   WHERE c.consumer = mine.consumer)"};

constexpr Statement kLeave{"event_worker_leave", "DELETE FROM event_worker WHERE node_id = $1"};

}  // namespace

awaitable<> release_claims(pg::Pool& pool, std::string node, std::vector<ClaimReport> reports, bool leaving,
                           std::optional<std::chrono::milliseconds> timeout) {
  const ReportColumns w(reports);
  pg::Batch batch;
  batch.add(kReleaseClaims, node, w.consumers, w.tokens, w.positions);
  if (leaving) batch.add(kLeave, node);
  batch.add(sql::kAnnounceConsumers);
  co_await pool.run(std::move(batch), {.timeout = timeout});
}

}  // namespace fencepost::outbox
