// Receives NOTIFY on its own connection.
//
// A notification is only a hint: PostgreSQL does not store notifications for a disconnected client. So after every
// (re)connect and LISTEN, each subscriber is asked to sweep: to find its work by a query. Sweeps also run at a long
// interval, in case a notification was lost.
//
// Behind a pooler in transaction mode, LISTEN is accepted but notifications do not arrive. So after each connect, a
// second session sends a test notification. If it does not arrive, the listener logs an error and sweeps at a short
// interval instead (Mode::kPolling).
//
// After the test has passed, the session's application_name lists its channels, for operators who read
// pg_stat_activity (which shows 63 bytes): "fencepost hears economy_work …".
//
// Pinned to one loop; callbacks run there and must not block.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "pg/connector.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::pg {

class Listener {
 public:
  enum class Mode { kConnecting, kListening, kPolling };
  struct Options {
    bool poll_only = false;                          // do not LISTEN: only sweep, every poll_interval
    std::chrono::milliseconds heartbeat{5000};       // how often to check that the session is alive
    std::chrono::milliseconds answer_timeout{5000};  // for the heartbeat and for the test notification
    std::chrono::milliseconds sweep_interval{30'000};
    std::chrono::milliseconds poll_interval{1000};
  };
  using OnNotify = std::function<void(std::string_view payload)>;
  using OnSweep = std::function<void()>;
  static constexpr std::string_view kSessionName = "fencepost hears";

  Listener(Executor executor, Connector& connector, const Options& options, Metrics& metrics);

  // Call before start(). Several subscribers may share a channel.
  void subscribe(std::string channel, OnNotify on_notify, OnSweep on_sweep);

  void start();
  awaitable<> stop();

  Mode mode() const { return mode_; }

 private:
  struct Subscriber {
    std::string channel;
    OnNotify on_notify;
    OnSweep on_sweep;
  };

  awaitable<> listen_forever();
  awaitable<> poll_forever();
  awaitable<> serve();
  awaitable<bool> prove();
  awaitable<> pause(std::chrono::milliseconds delay);
  void hear(std::string_view channel, std::string_view payload);
  void sweep();
  static void tell(const Subscriber& subscriber, const std::function<void()>& call);
  std::string listen_script() const;
  std::string name_script() const;

  Executor executor_;
  Connector& connector_;
  Options options_;
  SeededRandom random_;
  TaskGroup tasks_;
  std::vector<Subscriber> subscribers_;
  Mode mode_ = Mode::kConnecting;
  std::string proof_;
  std::shared_ptr<Completion<bool>> proven_;

  Metrics::Gauge& listening_;
  Metrics::Counter& notifications_total_;
  Metrics::Counter& sweeps_total_;
  Metrics::Counter& lost_total_;
};

}  // namespace fencepost::pg
