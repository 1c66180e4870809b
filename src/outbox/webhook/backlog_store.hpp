// The tables webhook_backlog and webhook_delivery (db/migrations/0013_webhook.sql). Functions throw as pg::Pool does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "base/uuid.hpp"
#include "outbox/delivery/consumer_store.hpp"
#include "outbox/webhook/parcel.hpp"
#include "outbox/webhook/webhook_sender.hpp"
#include "pg/pool.hpp"

namespace fencepost::outbox {

inline constexpr std::size_t kDeliveriesKept = 1000;  // of a webhook, of each result

// One request for the log of deliveries.
struct DeliveryEntry {
  std::string message;
  std::int64_t seq = 0;  // of the first event
  std::size_t events = 1;
  std::string type;
  std::string subject;
  int attempt = 1;
  Outcome outcome;
};

// A failed or unsent parcel: to be stored, or to be tried later.
struct ParkedParcel {
  const Parcel* parcel = nullptr;
  std::chrono::milliseconds retry_in{0};
  std::optional<unsigned> status;
  std::optional<std::string> error;  // nullopt: it was not sent
};

// What a round of deliveries changes. All of it is stored in one transaction.
struct BacklogChange {
  std::vector<ParkedParcel> park;         // new
  std::vector<ParkedParcel> put_off;      // stored before
  std::vector<std::int64_t> delivered;    // stored before
  std::vector<std::int64_t> dead;         // stored before: given up
  std::vector<DeliveryEntry> deliveries;  // for the log
  std::optional<std::string> disable;     // why the webhook must stop

  bool empty() const {
    return park.empty() && put_off.empty() && delivered.empty() && dead.empty() && deliveries.empty() && !disable;
  }
};

// The next numbers of the two rings of the delivery log.
struct DeliveryNumbers {
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;
};

// Stores the change if the claim is valid. Throws Exception kConflict `claim_lost` otherwise; nothing is stored then.
awaitable<> store_change(pg::Pool& pool, Claim claim, Uuid webhook, const BacklogChange& change,
                         DeliveryNumbers& numbers);

// The waiting parcels, oldest first, with times relative to now.
awaitable<std::vector<Parcel>> load_backlog(pg::Pool& pool, Uuid webhook);
awaitable<DeliveryNumbers> next_delivery_numbers(pg::Pool& pool, Uuid webhook);

struct DeadLetter {
  std::int64_t seq = 0;
  std::string type;
  std::string subject;
  std::string envelope;
  int attempts = 0;
  TimePoint parked_at;
  std::optional<int> last_status;
  std::optional<std::string> last_error;
};
boost::json::object to_json(const DeadLetter& letter);

// Oldest first, after `after`.
awaitable<std::vector<DeadLetter>> list_dead_letters(pg::Pool& pool, Uuid webhook, std::int64_t after,
                                                     std::size_t limit);

// Makes dead letters wait again, the oldest first, as long as at most `backlog` events wait. Empty `seqs`: all. Returns
// how many, and notifies the nodes.
awaitable<std::int64_t> replay_dead_letters(pg::Pool& pool, Uuid webhook, std::vector<std::int64_t> seqs,
                                            std::size_t backlog);

// The newest deliveries first, before `before` if it is given, as JSON. `succeeded`: only those, or only the others.
struct LoggedDelivery {
  TimePoint at;
  boost::json::object json;
};
awaitable<std::vector<LoggedDelivery>> list_deliveries(pg::Pool& pool, Uuid webhook, std::optional<bool> succeeded,
                                                       std::optional<TimePoint> before, std::size_t limit);

}  // namespace fencepost::outbox
