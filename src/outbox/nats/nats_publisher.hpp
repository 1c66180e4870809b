// Publishes to NATS over one session at a time, opens a new session when one is lost, and reports what fails: to the
// log once per change, to the metrics each time.
//
// All methods block and belong to one thread, except interrupt().
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "outbox/nats/nats_session.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::outbox {

class NatsPublisher {
 public:
  NatsPublisher(NatsOptions options, Metrics& metrics);

  // Opens a session unless there is a usable one. Returns why there is none; nullopt: there is.
  std::optional<NatsProblem> keep_open();
  // At most kNatsMaxBatch messages.
  NatsPublished publish(std::span<const NatsMessage> messages);
  void close();

  // Any thread. Ends a wait for acknowledgements at once, and lets no session be opened any more. A request or a
  // connect in progress still takes up to its timeout.
  void interrupt() { acks_->interrupt(); }

 private:
  void report(const std::optional<NatsProblem>& problem);
  void look_for_losses();

  const NatsOptions options_;
  std::shared_ptr<NatsAcks> acks_ = std::make_shared<NatsAcks>();
  std::unique_ptr<NatsSession> session_;
  std::optional<NatsProblem> reported_;
  std::uint64_t acknowledged_ = 0;  // the highest sequence that a server has acknowledged to this process
  Metrics::Gauge& connected_;
  Metrics::Counter& published_total_;
  Metrics::Counter& repeats_total_;
  std::function<Metrics::Counter&(NatsFailure)> failed_total_;
};

}  // namespace fencepost::outbox
