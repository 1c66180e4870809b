// Hears NOTIFY on a connection of its own.
//
// A notification is a hint, never the truth: PostgreSQL keeps none for a client that is away. So on every
// (re)connect, after LISTEN, each subscriber is told to sweep: "you may have missed something, look at the
// table". A slow beat sweeps too, in case a hint was lost on a way nobody thought of.
//
// Behind a pooler in transaction mode LISTEN is accepted and then nothing ever arrives. Each connect therefore
// proves itself with a notification sent by a second session; if it does not come, the listener says so loudly
// and sweeps on a short beat instead (Mode::kPolling).
//
// Once it has proved itself its session is named after what it hears, for whoever looks at pg_stat_activity, which
// shows 63 bytes: "fencepost hears economy_work …".
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
    bool poll_only = false;                          // never LISTEN: only sweep, every poll_interval
    std::chrono::milliseconds heartbeat{5000};       // how often the session is asked whether it is alive
    std::chrono::milliseconds answer_timeout{5000};  // for the heartbeat and for the proof
    std::chrono::milliseconds sweep_interval{30'000};
    std::chrono::milliseconds poll_interval{1000};
  };
  using OnNotify = std::function<void(std::string_view payload)>;
  using OnSweep = std::function<void()>;
  static constexpr std::string_view kSessionName = "fencepost hears";

  Listener(Executor executor, Connector& connector, const Options& options, Metrics& metrics);

  // Before start(). Several subscribers may share a channel.
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
