#include "outbox/event_announcer.hpp"

namespace fencepost::outbox {
namespace {

constexpr pg::Statement kAnnounce{"event_announce", "SELECT pg_notify('event_log', '')"};
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

EventAnnouncer::EventAnnouncer(Executor home, pg::Database& database, Metrics& metrics)
    : database_(database),
      pause_(home),
      worker_(
          home, {.name = "event_announcer", .interval = std::chrono::hours(24)}, [this] { return notify(); }, metrics) {
}

awaitable<Worker::Next> EventAnnouncer::notify() {
  co_await database_.pool().execute(kAnnounce);
  pause_.expires_after(kPause);
  co_await pause_.async_wait(use_tuple);
  co_return Worker::Next::kRest;
}

}  // namespace fencepost::outbox
