// Serves one claimed consumer: reads the feed after the consumer's position, hands the wanted events to its sink, and
// stores the position after each batch. One coroutine on one loop, so a consumer that is slow or fails delays no other.
//
// Skipped events move the position in memory only; the manager stores it with the next renewal of the claim. A crash
// before that makes the next owner look at the skipped events again, and no receiver sees them.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "outbox/delivery/consumer_store.hpp"
#include "outbox/delivery/sink.hpp"
#include "outbox/feed/event_feed.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::outbox {

struct RunnerOptions {
  std::chrono::milliseconds claim_duration{6000};
  BackoffOptions backoff{.initial = std::chrono::milliseconds(500), .cap = std::chrono::minutes(1)};
};

class ConsumerRunner {
 public:
  struct Parts {
    EventFeed& feed;
    pg::Database& database;
    Metrics::Counter& delivered_total;
    Metrics::Counter& skipped_total;
  };

  // `factory` and the parts must outlive this object. `on_lost` is called on this consumer's loop when the claim is
  // lost.
  ConsumerRunner(Executor home, Parts parts, const SinkFactory& factory, TakenClaim taken, Deadline valid_until,
                 const RunnerOptions& options, std::function<void()> on_lost);

  // Call both on any loop of the runtime. stop() lets the batch in flight finish within `grace`, then cancels it. The
  // owner awaits stop() before it destroys this object.
  awaitable<> start();
  awaitable<> stop(std::chrono::milliseconds grace);

  // Any thread.
  ClaimReport report() const;
  const Claim& claim() const { return claim_; }
  Executor home() const { return home_; }
  // A write found that another node has the claim: the runner does nothing any more.
  bool lost() const { return lost_; }
  // The claim is valid until then. The runner hands over nothing after that time.
  void renewed(Deadline valid_until) { valid_until_ = valid_until.time_since_epoch().count(); }
  // How far the receiver is behind.
  struct Lag {
    std::int64_t position = 0;
    std::optional<TimePoint> oldest_pending;  // when the oldest event happened that is read and not handled
    Waiting waiting;                          // handled, but not received
  };
  Lag lag() const;

 private:
  // The next events for the sink. `chunks` own them.
  struct Gathered {
    std::vector<std::shared_ptr<const LogEvents>> chunks;
    std::vector<const LogEvent*> wanted;
    std::int64_t through = 0;  // the last event looked at
  };

  awaitable<> run();
  awaitable<> serve();
  awaitable<> step();
  awaitable<Gathered> gather();
  awaitable<> hand_over(Gathered gathered);
  awaitable<> save();
  awaitable<> wait_for_events(std::optional<std::chrono::milliseconds> tend_after);
  awaitable<> pause(std::chrono::milliseconds delay);
  bool over() const { return group_.stopping() || lost_; }
  void note_failure(std::string delivering, std::string tending);
  void note_pending(std::optional<TimePoint> oldest);
  void note_waiting();

  Executor home_;
  Parts parts_;
  const SinkFactory& factory_;
  const Claim claim_;
  RunnerOptions options_;
  std::function<void()> on_lost_;
  std::unique_ptr<Sink> sink_;
  SeededRandom random_;
  Backoff backoff_;
  TaskGroup group_;
  bool idle_ = false;             // nothing is in flight: stop need not wait
  std::int64_t saved_;            // the position in the database, as far as this runner wrote it
  std::int64_t delivered_;        // the last event that the sink has handled
  Deadline not_before_{};         // the sink wants no event before
  std::string delivery_failure_;  // of the last delivery

  std::atomic<std::int64_t> position_;
  std::atomic<Deadline::rep> valid_until_;
  std::atomic<bool> lost_{false};
  mutable std::mutex mutex_;
  std::optional<TimePoint> oldest_pending_;  // guarded by mutex_
  Waiting waiting_;                          // guarded by mutex_
  std::optional<std::string> failure_;       // guarded by mutex_
};

}  // namespace fencepost::outbox
