#include "outbox/nats/nats_publisher.hpp"

#include <algorithm>

#include "runtime/log.hpp"

namespace fencepost::outbox {
namespace {

constexpr int kMostRounds = 5;  // when other publishers write to the stream at the same time

Metrics::Counter& failed_counter(Metrics& metrics, NatsFailure failure) {
  return metrics.counter("nats_failed_total", "Failed attempts to publish to NATS",
                         {{"reason", std::string(to_string(failure))}});
}

}  // namespace

NatsPublisher::NatsPublisher(NatsOptions options, Metrics& metrics)
    : options_(std::move(options)),
      connected_(metrics.gauge("nats_connected", "1 while this node publishes to NATS and is connected")),
      published_total_(metrics.counter("nats_published_total", "Events that this node stored in the stream")),
      repeats_total_(
          metrics.counter("nats_repeats_total", "Events that were offered again and the stream had already")),
      failed_total_([&metrics](NatsFailure failure) -> Metrics::Counter& { return failed_counter(metrics, failure); }) {
  for (const auto failure : {NatsFailure::kUnreachable, NatsFailure::kStream, NatsFailure::kRefused,
                             NatsFailure::kTimeout, NatsFailure::kLost})
    failed_total_(failure);
}

std::optional<NatsProblem> NatsPublisher::keep_open() {
  if (session_ && session_->usable()) return std::nullopt;
  close();
  if (acks_->interrupted()) return NatsProblem{NatsFailure::kUnreachable, "the node is stopping"};
  auto session = NatsSession::open(options_, acks_);
  if (!session) {
    report(session.error());
    return session.error();
  }
  session_ = std::move(*session);
  connected_.Set(1);
  report(std::nullopt);
  look_for_losses();
  return std::nullopt;
}

// A server that loses power, or a stream that was restored, may lack what was acknowledged. The position in the log is
// beyond it, so an operator must know.
void NatsPublisher::look_for_losses() {
  const auto last = session_->stream().last_sequence;
  if (last < acknowledged_) {
    failed_total_(NatsFailure::kLost).Increment();
    log::error(
        "the stream lacks messages that it had acknowledged: it was deleted or restored, or the server lost them",
        {{"stream", options_.stream}, {"acknowledged", acknowledged_}, {"last", last}});
  }
  acknowledged_ = last;
}

NatsPublished NatsPublisher::publish(std::span<const NatsMessage> messages) {
  NatsPublished out;
  for (int round = 0; round < kMostRounds; ++round) {
    if (auto problem = keep_open()) {
      out.problem = std::move(problem);
      return out;
    }
    auto some = session_->publish(messages.subspan(out.stored));
    published_total_.Increment(static_cast<double>(some.stored - some.repeats));
    repeats_total_.Increment(static_cast<double>(some.repeats));
    acknowledged_ = std::max(acknowledged_, session_->stream().last_sequence);
    out.stored += some.stored;
    out.repeats += some.repeats;
    out.problem = std::move(some.problem);
    if (!some.again) break;
  }
  if (session_ && !session_->usable()) close();
  report(out.problem);
  return out;
}

void NatsPublisher::close() {
  session_.reset();
  connected_.Set(0);
}

void NatsPublisher::report(const std::optional<NatsProblem>& problem) {
  if (acks_->interrupted()) return;  // the node stops: nothing has failed
  if (problem) failed_total_(problem->kind).Increment();
  // The text of a refusal has numbers that differ each time; its kind says enough.
  const bool same = problem && reported_ && problem->kind == reported_->kind &&
                    (problem->kind != NatsFailure::kStream || problem->text == reported_->text);
  if (problem && !same) {
    log::warn("events wait for NATS",
              {{"stream", options_.stream}, {"reason", to_string(problem->kind)}, {"detail", problem->text}});
  } else if (!problem && reported_) {
    log::info("events go to NATS again", {{"stream", options_.stream}});
  }
  reported_ = problem;
}

}  // namespace fencepost::outbox
