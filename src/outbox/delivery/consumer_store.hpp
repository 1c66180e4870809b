// The tables event_consumer and event_worker (db/migrations/0012_event_consumer.sql): which consumers there are, how
// far each has read, and which node serves it.
//
// A claim is valid until `claimed_until` by the database's clock. Every write for a consumer goes through its claim in
// one statement, and zero rows mean that the claim is lost. A takeover locks the row FOR UPDATE and checks again after
// a wait, so it cannot pass a write that has passed its check. Functions throw as pg::Pool does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

// Sent when consumers are added, changed, removed or released.
inline constexpr std::string_view kConsumerChannel = "event_consumer";

struct Claim {
  std::string consumer;  // "<kind>/<name>", for example "webhook/<uuid>"
  std::string node;
  std::int64_t token = 0;
  std::int64_t revision = 0;  // of the settings, when the claim was taken or seen last

  bool operator==(const Claim&) const = default;
};

std::string_view kind_of(std::string_view consumer);

struct TakenClaim {
  Claim claim;
  std::int64_t position = 0;
};

// What a node knows about a consumer that it serves, written with the renewal.
struct ClaimReport {
  Claim claim;
  std::int64_t position = 0;           // the last event handled or skipped
  std::optional<std::string> failure;  // why the last delivery failed; nullopt: it did not
};

struct ConsumerView {
  std::string consumer;
  bool active = true;
  std::int64_t revision = 0;
  std::int64_t position = 0;
  std::string owner_node;  // empty: none
  std::int64_t token = 0;
  bool claimed = false;                      // the claim has not expired
  std::chrono::milliseconds claimed_for{0};  // how long it is valid from the moment of the query
  std::optional<TimePoint> failing_since;
  std::optional<std::string> last_error;
};

struct ConsumerOverview {
  std::vector<ConsumerView> consumers;    // by name
  std::vector<std::string> worker_kinds;  // one entry for each live node and kind that it serves
};

inline constexpr std::size_t kMaxConsumers = 10'000;  // in the whole cluster; more are not served

namespace sql {
extern const pg::Statement kAddConsumer;        // ($1 consumer, $2 position); an existing one is left alone
extern const pg::Statement kSetConsumerActive;  // ($1 consumer, $2 active): raises the revision
extern const pg::Statement kTouchConsumer;      // ($1 consumer): its settings have changed
extern const pg::Statement kRemoveConsumer;     // ($1 consumer)
extern const pg::Statement kAnnounceConsumers;  // (): notifies the nodes at the commit
extern const pg::Statement kTakeClaims;
extern const pg::Statement kAdvance;
extern const pg::Statement kRenewClaims;
}  // namespace sql

// For a statement of a sink's own: a CTE `claim` with one row while the claim is valid, none otherwise. It locks the
// consumer's row until the end of the transaction. Parameters: $1 consumer, $2 node, $3 token.
#define FENCEPOST_HOLDS_CLAIM                  \
  "claim AS MATERIALIZED ("                    \
  "  SELECT 1"                                 \
  "    FROM event_consumer"                    \
  "   WHERE consumer = $1"                     \
  "     AND owner_node = $2"                   \
  "     AND claim_token = $3::bigint"          \
  "     AND claimed_until > clock_timestamp()" \
  "     FOR NO KEY UPDATE)"

// Adds a consumer that starts after `position`, unless it exists, and notifies the nodes.
awaitable<> add_consumer(pg::Pool& pool, std::string consumer, std::int64_t position);
// Removes it and notifies the nodes.
awaitable<> remove_consumer(pg::Pool& pool, std::string consumer);

// Takes at most `limit` consumers of that kind that are active and not claimed. Consumers that another session is
// taking or changing are left out.
awaitable<std::vector<TakenClaim>> take_claims(pg::Pool& pool, std::string node, std::string kind, std::size_t limit,
                                               std::chrono::milliseconds duration);

// Registers the node as alive for `duration`, renews its claims and stores what it reports, in one transaction. Returns
// all consumers and all live nodes as they are afterwards. A claim whose row another session has locked is not renewed.
awaitable<ConsumerOverview> renew_claims(pg::Pool& pool, std::string node, std::vector<std::string> kinds,
                                         std::vector<ClaimReport> reports, std::chrono::milliseconds duration);

// Stores that every event up to `position` is handled, and renews the claim. False: the claim is lost. Safe to repeat.
awaitable<bool> advance(pg::Pool& pool, Claim claim, std::int64_t position, std::chrono::milliseconds duration);

// Gives the claims back, with what the node reports, and notifies the other nodes. `leaving`: also removes the node
// itself.
awaitable<> release_claims(pg::Pool& pool, std::string node, std::vector<ClaimReport> reports, bool leaving,
                           std::optional<std::chrono::milliseconds> timeout = std::nullopt);

}  // namespace fencepost::outbox
