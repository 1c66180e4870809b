// What callers see of the backlog and of the log of deliveries.
#include <boost/json/parse.hpp>

#include "base/json.hpp"
#include "outbox/webhook/backlog_store.hpp"
#include "outbox/webhook/webhook.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using pg::Statement;

constexpr Statement kDeadLetters{"webhook_dead_letters", R"(
  SELECT seq, type, subject, envelope, attempts, parked_at, last_status, last_error
    FROM webhook_backlog
   WHERE webhook_id = $1
     AND state = 'dead'
     AND seq > $2
   ORDER BY seq
   LIMIT $3)"};

// A replayed event counts its attempts anew. It is sent alone: its message had events that may have been delivered.
constexpr Statement kReplay{"webhook_replay", R"(
  WITH again AS MATERIALIZED (
    SELECT seq
      FROM webhook_backlog
     WHERE webhook_id = $1
       AND state = 'dead'
       AND (cardinality($2::bigint[]) = 0 OR seq = ANY ($2::bigint[]))
     ORDER BY seq
     LIMIT greatest($3::bigint - (SELECT count(*) FROM webhook_backlog WHERE webhook_id = $1 AND state = 'waiting'), 0)
       FOR UPDATE
  )
  UPDATE webhook_backlog AS b
     SET state = 'waiting',
         message = $1::text || '_' || b.seq,
         attempts = 0,
         parked_at = clock_timestamp(),
         next_try_at = clock_timestamp()
    FROM again
   WHERE b.webhook_id = $1
     AND b.seq = again.seq)"};

constexpr Statement kDeliveries{"webhook_deliveries", R"(
  SELECT message, seq, events, type, subject, attempt, at, succeeded, status, latency_ms, error
    FROM webhook_delivery
   WHERE webhook_id = $1
     AND ($2::boolean IS NULL OR succeeded = $2)
     AND ($3::timestamptz IS NULL OR at < $3)
   ORDER BY at DESC, number DESC
   LIMIT $4)"};

}  // namespace

json::object to_json(const DeadLetter& letter) {
  return {{"seq", std::to_string(letter.seq)},
          {"type", letter.type},
          {"subject", letter.subject},
          {"attempts", letter.attempts},
          {"parkedAt", to_rfc3339(letter.parked_at)},
          {"lastStatus", optional_json(letter.last_status)},
          {"lastError", optional_json(letter.last_error)},
          {"event", json::parse(letter.envelope)}};
}

awaitable<std::vector<DeadLetter>> list_dead_letters(pg::Pool& pool, Uuid webhook, std::int64_t after,
                                                     std::size_t limit) {
  const auto rows = co_await pool.query(kDeadLetters, webhook, after, limit);
  std::vector<DeadLetter> out;
  for (const auto row : rows) {
    out.push_back({.seq = row.get<std::int64_t>("seq"),
                   .type = row.get<std::string>("type"),
                   .subject = row.get<std::string>("subject"),
                   .envelope = row.get<std::string>("envelope"),
                   .attempts = row.get<int>("attempts"),
                   .parked_at = row.get<TimePoint>("parked_at"),
                   .last_status = row.get<std::optional<int>>("last_status"),
                   .last_error = row.get<std::optional<std::string>>("last_error")});
  }
  co_return out;
}

awaitable<std::int64_t> replay_dead_letters(pg::Pool& pool, Uuid webhook, std::vector<std::int64_t> seqs,
                                            std::size_t backlog) {
  pg::Batch batch;
  batch.add(kReplay, webhook, seqs, backlog);
  batch.add(sql::kTouchConsumer, Webhook::consumer_of(webhook)).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  co_return results[0].affected();
}

awaitable<std::vector<LoggedDelivery>> list_deliveries(pg::Pool& pool, Uuid webhook, std::optional<bool> succeeded,
                                                       std::optional<TimePoint> before, std::size_t limit) {
  const auto rows = co_await pool.query(kDeliveries, webhook, succeeded, before, limit);
  std::vector<LoggedDelivery> out;
  for (const auto row : rows) {
    const auto at = row.get<TimePoint>("at");
    out.push_back({at,
                   {{"webhookId", row.get<std::string>("message")},
                    {"seq", std::to_string(row.get<std::int64_t>("seq"))},
                    {"events", row.get<int>("events")},
                    {"type", row.get<std::string>("type")},
                    {"subject", row.get<std::string>("subject")},
                    {"attempt", row.get<int>("attempt")},
                    {"at", to_rfc3339(at)},
                    {"succeeded", row.get<bool>("succeeded")},
                    {"status", optional_json(row.get<std::optional<int>>("status"))},
                    {"latencyMs", row.get<int>("latency_ms")},
                    {"error", optional_json(row.get<std::optional<std::string>>("error"))}}});
  }
  co_return out;
}

}  // namespace fencepost::outbox
