// Delivers the log to a stream of NATS JetStream (docs/nats.md). One durable consumer, "nats/<name>", for the whole
// cluster; the node that has its claim publishes.
//
// libnats blocks and has threads of its own. Everything that calls it runs on one thread of NatsDelivery; the loops
// only wait for the results.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "outbox/delivery/sink.hpp"
#include "outbox/nats/nats_publisher.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::outbox {

// Requires: outlives its sinks, and the loops that ran them have ended when it is destroyed.
class NatsDelivery {
 public:
  NatsDelivery(NatsOptions options, Metrics& metrics);

  const NatsOptions& options() const { return options_; }
  std::string consumer() const { return "nats/" + options_.name; }
  // Call on the loop that uses the sink. At most one sink at a time.
  std::unique_ptr<Sink> make_sink(Executor home);
  // Makes the sink of consumer(). Other consumers of the kind are left over from another nats.name, and get none.
  SinkFactory factory();

  // Each runs on the thread of its own. A cancelled caller returns at once, and the work ends soon.
  awaitable<NatsPublished> publish(std::shared_ptr<const std::vector<NatsMessage>> messages);
  awaitable<std::optional<NatsProblem>> keep_open();
  awaitable<> close();

  // Interrupts the work in progress and closes the connection. Call after the sink is gone.
  awaitable<> stop();

 private:
  const NatsOptions options_;
  NatsPublisher publisher_;
  // For its pool of one thread. Not the node's pool: a broker that does not answer must not delay a signature.
  Runtime blocking_{{.threads = 1, .cpu_threads = 1}};
};

class NatsSink : public Sink {
 public:
  NatsSink(NatsDelivery& delivery, Executor home);
  ~NatsSink() override;
  NatsSink(const NatsSink&) = delete;
  NatsSink& operator=(const NatsSink&) = delete;

  bool wants(const LogEvent&) const override { return true; }
  awaitable<Handed> deliver(std::vector<const LogEvent*> events) override;
  std::size_t max_batch() const override { return kNatsMaxBatch; }
  // Connects as soon as the node has the claim, and again when the connection is lost while there are no events.
  awaitable<Tended> tend() override;

 private:
  void note(const std::optional<NatsProblem>& problem);
  std::chrono::milliseconds left() const;

  NatsDelivery& delivery_;
  Executor home_;
  SystemRandom random_;
  Backoff backoff_;
  std::chrono::steady_clock::time_point not_before_{};  // of the next attempt, or of the next look at the connection
  std::optional<NatsProblem> problem_;
};

}  // namespace fencepost::outbox
