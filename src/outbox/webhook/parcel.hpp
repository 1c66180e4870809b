// The events of one request, and the order in which requests may be sent. Pure: no I/O.
//
// Events of one subject must arrive in their order. So a parcel waits until every earlier parcel with one of its
// subjects has been delivered or given up; parcels of other subjects pass it.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/uuid.hpp"
#include "outbox/feed/log_event.hpp"
#include "outbox/webhook/options.hpp"
#include "runtime/completion.hpp"

namespace fencepost::outbox {

struct ParcelEvent {
  std::int64_t seq = 0;
  std::string type;
  std::string subject;
  std::string envelope;
};

struct Parcel {
  std::string message;  // the header webhook-id
  std::vector<ParcelEvent> events;
  int attempts = 0;
  Deadline parked_at{};  // when it was stored for a retry; epoch: it is not
  Deadline next_try{};

  std::int64_t first_seq() const { return events.front().seq; }
};

// Parcels of at most `most` events. A parcel has several events of one subject only in their order, and two parcels
// that share a subject are in the order of the log. `most` 0: one event each.
std::vector<Parcel> pack(const Uuid& webhook, const std::vector<const LogEvent*>& events, std::size_t most);

// The body of the request.
std::string body_of(const Parcel& parcel, bool list);

// Parcels that wait for a retry, in the order of the log.
class ParcelQueue {
 public:
  using Place = std::list<Parcel>::iterator;

  void add(Parcel parcel);
  void remove(Place place);
  // When the first of them was stored; nullopt: there are none.
  std::optional<Deadline> oldest() const;
  // The number of events.
  std::size_t size() const { return events_; }
  bool empty() const { return parcels_.empty(); }
  bool has_subject(std::string_view subject) const { return subjects_.contains(std::string(subject)); }
  bool has(std::int64_t seq) const;
  std::list<Parcel>& parcels() { return parcels_; }
  // The parcels that no earlier one holds back, in the order of the log.
  std::vector<Place> ready();

 private:
  std::list<Parcel> parcels_;
  std::multiset<std::string, std::less<>> subjects_;
  std::size_t events_ = 0;
};

// How long to wait after so many failures: about retry_initial at first, twice as long each time, at most retry_cap,
// give or take a fifth; at least `asked`.
std::chrono::milliseconds retry_delay(int failures, std::optional<std::chrono::milliseconds> asked,
                                      const WebhookOptions& options, Random& random);

}  // namespace fencepost::outbox
