#include "runtime/worker.hpp"

#include <algorithm>

#include <boost/asio/post.hpp>

#include "base/error.hpp"
#include "runtime/log.hpp"

namespace fencepost {
namespace {

Metrics::Labels labels(const Worker::Options& options, const char* result = nullptr) {
  Metrics::Labels labels{{"worker", options.name}};
  if (!options.chain.empty()) labels.emplace("chain", options.chain);
  if (result != nullptr) labels.emplace("result", result);
  return labels;
}

}  // namespace

Worker::Worker(Executor executor, Options options, Step step, Metrics& metrics)
    : options_(std::move(options)),
      step_(std::move(step)),
      random_(SystemRandom().next()),
      backoff_(options_.backoff, random_),
      group_(executor, options_.name, 1),
      alarm_(std::make_shared<Alarm>(executor)),
      ok_total_(metrics.counter("worker_runs_total", "Runs of a background worker, by result", labels(options_, "ok"))),
      failed_total_(
          metrics.counter("worker_runs_total", "Runs of a background worker, by result", labels(options_, "failed"))),
      duration_(metrics.time_spent("worker_run_duration_seconds", "Duration of a worker's run", labels(options_))) {}

void Worker::start() {
  if (!group_.spawn(run())) log::error("worker did not start", {{"worker", options_.name}});
}

void Worker::wake() {
  if (alarm_->woken.exchange(true)) return;
  asio::post(alarm_->home, [alarm = alarm_] { alarm->timer.cancel(); });
}

awaitable<> Worker::stop(std::chrono::milliseconds at_most) {
  // Runs after group_ has begun to stop, and ends the wait for the interval or the backoff.
  asio::post(alarm_->home, [alarm = alarm_] { alarm->timer.cancel(); });
  co_await group_.stop(std::min(options_.stop_grace, at_most));
}

awaitable<> Worker::run() {
  while (!group_.stopping()) {
    alarm_->woken = false;
    const auto next = co_await step_once();
    if (!next) {
      co_await rest(backoff_.next(), false);
    } else if (*next == Next::kRest) {
      backoff_.reset();
      co_await rest(options_.interval, true);
    } else {
      backoff_.reset();
      co_await asio::post(alarm_->home, asio::use_awaitable);  // let other coroutines of this loop run
    }
  }
}

awaitable<std::optional<Worker::Next>> Worker::step_once() {
  const auto start = std::chrono::steady_clock::now();
  std::optional<Next> next;
  std::optional<Error> failure;
  try {
    next = co_await step_();
  } catch (const std::exception&) {
    failure = error_of(std::current_exception());
  }
  duration_.Observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  (next ? ok_total_ : failed_total_).Increment();
  if (failure && !group_.stopping()) log::error("worker failed", *failure, {{"worker", options_.name}});
  co_return next;
}

awaitable<> Worker::rest(std::chrono::milliseconds delay, bool wakeable) {
  auto& clock = *options_.clock;
  const auto deadline = clock.now() + delay;
  while (!group_.stopping() && clock.now() < deadline) {
    if (wakeable && alarm_->woken) co_return;
    co_await clock.wait_until(alarm_->timer, deadline);
  }
}

}  // namespace fencepost
