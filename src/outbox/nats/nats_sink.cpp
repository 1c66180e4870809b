#include "outbox/nats/nats_sink.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "runtime/test_point.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kTendInterval = 1s;

awaitable<> close_later(NatsDelivery& delivery) {
  co_await delivery.close();
}

}  // namespace

NatsDelivery::NatsDelivery(NatsOptions options, Metrics& metrics)
    : options_(std::move(options)), publisher_(options_, metrics) {}

std::unique_ptr<Sink> NatsDelivery::make_sink(Executor home) {
  return std::make_unique<NatsSink>(*this, home);
}

SinkFactory NatsDelivery::factory() {
  return [this](Claim claim) -> awaitable<std::unique_ptr<Sink>> {
    if (claim.consumer != consumer()) co_return nullptr;
    co_return make_sink(co_await this_executor());
  };
}

awaitable<NatsPublished> NatsDelivery::publish(std::shared_ptr<const std::vector<NatsMessage>> messages) {
  auto work = [this, messages = std::move(messages)] { return publisher_.publish(*messages); };
  co_return co_await blocking_.offload(std::move(work));
}

awaitable<std::optional<NatsProblem>> NatsDelivery::keep_open() {
  auto work = [this] { return publisher_.keep_open(); };
  co_return co_await blocking_.offload(work);
}

awaitable<> NatsDelivery::close() {
  auto work = [this] { publisher_.close(); };
  co_await blocking_.offload(work);
}

awaitable<> NatsDelivery::stop() {
  publisher_.interrupt();
  co_await close();
}

NatsSink::NatsSink(NatsDelivery& delivery, Executor home)
    : delivery_(delivery), home_(home), backoff_({.initial = 200ms, .cap = 10s}, random_) {}

NatsSink::~NatsSink() {
  // Another node may have the claim now: give the connection up, without blocking this loop.
  asio::co_spawn(home_, close_later(delivery_), asio::detached);
}

awaitable<Handed> NatsSink::deliver(std::vector<const LogEvent*> events) {
  if (problem_ && left() > 0ms) co_return Handed{.handled = 0, .retry_after = left(), .error = problem_->text};
  auto messages = std::make_shared<std::vector<NatsMessage>>();
  messages->reserve(events.size());
  for (const auto* event : events) messages->push_back(to_nats_message(*event, delivery_.options().subject_prefix));
  const auto published = co_await delivery_.publish(std::move(messages));
  test_point("nats.published");
  if (published.stored > 0) backoff_.reset();
  note(published.problem);
  if (!published.problem) co_return Handed{.handled = published.stored, .retry_after = {}, .error = {}};
  co_return Handed{.handled = published.stored, .retry_after = left(), .error = published.problem->text};
}

awaitable<Tended> NatsSink::tend() {
  if (left() == 0ms) {
    const auto problem = co_await delivery_.keep_open();
    note(problem);
  }
  co_return Tended{.again_after = left(), .error = problem_ ? problem_->text : ""};
}

void NatsSink::note(const std::optional<NatsProblem>& problem) {
  problem_ = problem;
  if (!problem) backoff_.reset();
  not_before_ = Clock::now() + (problem ? std::max(backoff_.next(), 10ms) : std::chrono::milliseconds(kTendInterval));
}

std::chrono::milliseconds NatsSink::left() const {
  return std::max(std::chrono::ceil<std::chrono::milliseconds>(not_before_ - Clock::now()), 0ms);
}

}  // namespace fencepost::outbox
