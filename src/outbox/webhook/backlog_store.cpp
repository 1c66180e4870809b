#include "outbox/webhook/backlog_store.hpp"

#include <algorithm>
#include <map>

#include "base/json.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using pg::Statement;

// The log shows single deliveries; at high rates it need not have every one of them.
constexpr std::size_t kMaxLoggedAtOnce = 200;

constexpr Statement kHoldClaim{"webhook_hold_claim", "WITH " FENCEPOST_HOLDS_CLAIM " SELECT 1 FROM claim"};

constexpr Statement kPark{"webhook_backlog_park", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  INSERT INTO webhook_backlog (webhook_id, seq, message, type, subject, envelope, attempts, next_try_at, last_status,
                               last_error)
  SELECT $4::uuid, p.seq, p.message, p.type, p.subject, p.envelope, p.attempts,
         clock_timestamp() + make_interval(secs => p.retry_ms / 1000.0), p.status, p.error
    FROM claim,
         unnest($5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[], $10::integer[], $11::bigint[],
                $12::integer[], $13::text[])
           AS p(seq, message, type, subject, envelope, attempts, retry_ms, status, error)
      ON CONFLICT DO NOTHING)"};

constexpr Statement kPutOff{"webhook_backlog_put_off", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  UPDATE webhook_backlog AS b
     SET attempts = p.attempts,
         next_try_at = clock_timestamp() + make_interval(secs => p.retry_ms / 1000.0),
         last_status = p.status,
         last_error = p.error
    FROM claim,
         unnest($5::bigint[], $6::integer[], $7::bigint[], $8::integer[], $9::text[])
           AS p(seq, attempts, retry_ms, status, error)
   WHERE b.webhook_id = $4
     AND b.seq = p.seq)"};

constexpr Statement kForgetDelivered{"webhook_backlog_delivered", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  DELETE FROM webhook_backlog
   USING claim
   WHERE webhook_id = $4
     AND seq = ANY ($5::bigint[]))"};

constexpr Statement kBury{"webhook_backlog_bury", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  UPDATE webhook_backlog
     SET state = 'dead'
    FROM claim
   WHERE webhook_id = $4
     AND seq = ANY ($5::bigint[]))"};

constexpr Statement kLogDeliveries{"webhook_delivery_log", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  INSERT INTO webhook_delivery AS d (webhook_id, succeeded, slot, number, message, seq, events, type, subject, attempt,
                                     at, status, latency_ms, error)
  SELECT $4::uuid, p.succeeded, p.number % 1000, p.number, p.message, p.seq, p.events, p.type, p.subject, p.attempt,
         p.at, p.status, p.latency_ms, p.error
    FROM claim,
         unnest($5::boolean[], $6::bigint[], $7::text[], $8::bigint[], $9::integer[], $10::text[], $11::text[],
                $12::integer[], $13::timestamptz[], $14::integer[], $15::integer[], $16::text[])
           AS p(succeeded, number, message, seq, events, type, subject, attempt, at, status, latency_ms, error)
      ON CONFLICT (webhook_id, succeeded, slot) DO UPDATE
     SET number = excluded.number, message = excluded.message, seq = excluded.seq, events = excluded.events,
         type = excluded.type, subject = excluded.subject, attempt = excluded.attempt, at = excluded.at,
         status = excluded.status, latency_ms = excluded.latency_ms, error = excluded.error)"};

constexpr Statement kDisable{"webhook_disable", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  UPDATE webhook
     SET state = 'disabled', disabled_reason = $5, updated_at = clock_timestamp()
    FROM claim
   WHERE id = $4
     AND state = 'active')"};

constexpr Statement kDisableIfFull{"webhook_disable_if_full", "WITH " FENCEPOST_HOLDS_CLAIM R"(
  UPDATE webhook
     SET state = 'disabled', disabled_reason = 'too many dead letters', updated_at = clock_timestamp()
    FROM claim
   WHERE id = $4
     AND state = 'active'
     AND (SELECT count(*) FROM webhook_backlog WHERE webhook_id = $4 AND webhook_backlog.state = 'dead') >= $5)"};

constexpr Statement kStopConsumer{"webhook_stop_consumer", R"(
  UPDATE event_consumer AS c
     SET active = false, revision = c.revision + 1, updated_at = clock_timestamp()
    FROM webhook AS w
   WHERE w.id = $1
     AND w.state <> 'active'
     AND c.consumer = 'webhook/' || w.id)"};

std::optional<std::int32_t> status_of(const std::optional<unsigned>& status) {
  return status ? std::optional<std::int32_t>(static_cast<std::int32_t>(*status)) : std::nullopt;
}

// Columns for one row of each event.
struct ParkColumns {
  explicit ParkColumns(const std::vector<ParkedParcel>& parked) {
    for (const auto& entry : parked) {
      for (const auto& event : entry.parcel->events) {
        seqs.push_back(event.seq);
        messages.push_back(entry.parcel->message);
        types.push_back(event.type);
        subjects.push_back(event.subject);
        envelopes.push_back(event.envelope);
        attempts.push_back(entry.parcel->attempts);
        retry_ms.push_back(entry.retry_in.count());
        statuses.push_back(status_of(entry.status));
        errors.push_back(entry.error);
      }
    }
  }
  std::vector<std::int64_t> seqs;
  std::vector<std::string_view> messages, types, subjects, envelopes;
  std::vector<std::int32_t> attempts;
  std::vector<std::int64_t> retry_ms;
  std::vector<std::optional<std::int32_t>> statuses;
  std::vector<std::optional<std::string>> errors;
};

void add_log(pg::Batch& batch, const Claim& claim, const Uuid& webhook, std::span<const DeliveryEntry> entries,
             DeliveryNumbers& numbers) {
  std::vector<bool> succeeded;
  std::vector<std::int64_t> number, seq;
  std::vector<std::string_view> message, type, subject;
  std::vector<std::int32_t> events, attempt, latency;
  std::vector<TimePoint> at;
  std::vector<std::optional<std::int32_t>> status;
  std::vector<std::optional<std::string>> error;
  for (const auto& entry : entries) {
    const auto& outcome = entry.outcome;
    succeeded.push_back(outcome.delivered());
    number.push_back(outcome.delivered() ? numbers.succeeded++ : numbers.failed++);
    message.push_back(entry.message);
    seq.push_back(entry.seq);
    events.push_back(static_cast<std::int32_t>(entry.events));
    type.push_back(entry.type);
    subject.push_back(entry.subject);
    attempt.push_back(entry.attempt);
    at.push_back(outcome.at);
    status.push_back(status_of(outcome.status));
    latency.push_back(static_cast<std::int32_t>(outcome.latency.count()));
    error.push_back(outcome.error.empty() ? std::nullopt : std::optional(outcome.error));
  }
  batch.add(kLogDeliveries, claim.consumer, claim.node, claim.token, webhook, succeeded, number, message, seq, events,
            type, subject, attempt, at, status, latency, error);
}

}  // namespace

awaitable<> store_change(pg::Pool& pool, Claim claim, Uuid webhook, const BacklogChange& change,
                         DeliveryNumbers& numbers) {
  if (change.empty()) co_return;
  pg::Batch batch;
  batch.add(kHoldClaim, claim.consumer, claim.node, claim.token);
  if (!change.park.empty()) {
    const ParkColumns p(change.park);
    batch.add(kPark, claim.consumer, claim.node, claim.token, webhook, p.seqs, p.messages, p.types, p.subjects,
              p.envelopes, p.attempts, p.retry_ms, p.statuses, p.errors);
  }
  if (!change.put_off.empty()) {
    const ParkColumns p(change.put_off);
    batch.add(kPutOff, claim.consumer, claim.node, claim.token, webhook, p.seqs, p.attempts, p.retry_ms, p.statuses,
              p.errors);
  }
  if (!change.delivered.empty()) {
    batch.add(kForgetDelivered, claim.consumer, claim.node, claim.token, webhook, change.delivered);
  }
  if (!change.dead.empty()) {
    batch.add(kBury, claim.consumer, claim.node, claim.token, webhook, change.dead);
    batch.add(kDisableIfFull, claim.consumer, claim.node, claim.token, webhook, kMaxDeadLetters);
  }
  const std::span entries(change.deliveries);
  auto next = numbers;
  if (!entries.empty()) {
    add_log(batch, claim, webhook, entries.last(std::min(entries.size(), kMaxLoggedAtOnce)), next);
  }
  if (change.disable) {
    batch.add(kDisable, claim.consumer, claim.node, claim.token, webhook, *change.disable);
  }
  if (change.disable || !change.dead.empty()) batch.add(kStopConsumer, webhook).add(sql::kAnnounceConsumers);
  const auto results = co_await pool.run(std::move(batch));
  if (results[0].empty()) {
    throw Exception(conflict("claim_lost", "another node serves this webhook now").with("consumer", claim.consumer));
  }
  numbers = next;
}

namespace {

constexpr Statement kLoadBacklog{"webhook_backlog_load", R"(
  SELECT seq, message, type, subject, envelope, attempts,
         (1000 * extract(epoch FROM clock_timestamp() - parked_at))::bigint AS parked_ms,
         (1000 * extract(epoch FROM next_try_at - clock_timestamp()))::bigint AS retry_ms
    FROM webhook_backlog
   WHERE webhook_id = $1
     AND state = 'waiting'
   ORDER BY seq)"};

constexpr Statement kNextNumbers{"webhook_delivery_next", R"(
  SELECT coalesce(max(number) FILTER (WHERE succeeded), -1) + 1 AS succeeded,
         coalesce(max(number) FILTER (WHERE NOT succeeded), -1) + 1 AS failed
    FROM webhook_delivery
   WHERE webhook_id = $1)"};

}  // namespace

awaitable<std::vector<Parcel>> load_backlog(pg::Pool& pool, Uuid webhook) {
  const auto rows = co_await pool.query(kLoadBacklog, webhook);
  const auto now = std::chrono::steady_clock::now();
  std::vector<Parcel> parcels;
  std::map<std::string, std::size_t> places;  // by message: events of other parcels may lie between those of one
  for (const auto row : rows) {
    const auto message = row.get<std::string>("message");
    const auto [place, is_new] = places.try_emplace(message, parcels.size());
    if (is_new) {
      parcels.push_back({.message = message,
                         .events = {},
                         .attempts = row.get<int>("attempts"),
                         .parked_at = now - std::chrono::milliseconds(row.get<std::int64_t>("parked_ms")),
                         .next_try = now + std::chrono::milliseconds(row.get<std::int64_t>("retry_ms"))});
    }
    parcels[place->second].events.push_back({.seq = row.get<std::int64_t>("seq"),
                                             .type = row.get<std::string>("type"),
                                             .subject = row.get<std::string>("subject"),
                                             .envelope = row.get<std::string>("envelope")});
  }
  co_return parcels;
}

awaitable<DeliveryNumbers> next_delivery_numbers(pg::Pool& pool, Uuid webhook) {
  const auto rows = co_await pool.query(kNextNumbers, webhook);
  const auto row = rows.one();
  co_return DeliveryNumbers{.succeeded = row.get<std::int64_t>("succeeded"), .failed = row.get<std::int64_t>("failed")};
}

}  // namespace fencepost::outbox
