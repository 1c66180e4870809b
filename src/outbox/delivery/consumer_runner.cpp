#include "outbox/delivery/consumer_runner.hpp"

#include <algorithm>

#include <boost/asio/post.hpp>

#include "runtime/log.hpp"
#include "runtime/on_loop.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using SteadyTime = std::chrono::steady_clock;

constexpr std::size_t kMaxLook = 10'000;      // events that one gathering looks at
constexpr std::size_t kMaxFailureText = 500;  // bytes
constexpr auto kLongestWait = 10s;            // without any event

// True while it lives.
class Mark {
 public:
  explicit Mark(bool& flag) : flag_(flag) { flag_ = true; }
  ~Mark() { flag_ = false; }
  Mark(const Mark&) = delete;

 private:
  bool& flag_;
};

}  // namespace

ConsumerRunner::ConsumerRunner(Executor home, Parts parts, const SinkFactory& factory, TakenClaim taken,
                               Deadline valid_until, const RunnerOptions& options, std::function<void()> on_lost)
    : home_(home),
      parts_(parts),
      factory_(factory),
      claim_(std::move(taken.claim)),
      options_(options),
      on_lost_(std::move(on_lost)),
      random_(SystemRandom().next()),
      backoff_(options_.backoff, random_),
      group_(home, "consumer " + claim_.consumer, 1),
      saved_(taken.position),
      delivered_(taken.position),
      position_(taken.position),
      valid_until_(valid_until.time_since_epoch().count()) {}

awaitable<> ConsumerRunner::start() {
  co_await on_loop(home_, [this]() -> awaitable<> {
    if (!group_.spawn(run())) log::error("a consumer did not start", {{"consumer", claim_.consumer}});
    co_return;
  });
}

awaitable<> ConsumerRunner::stop(std::chrono::milliseconds grace) {
  co_await on_loop(home_, [this, grace]() -> awaitable<> {
    co_await group_.stop(idle_ ? 0ms : grace);
    sink_.reset();  // it belongs to this loop
  });
}

ClaimReport ConsumerRunner::report() const {
  const std::lock_guard lock(mutex_);
  return {.claim = claim_, .position = position_, .failure = failure_};
}

ConsumerRunner::Lag ConsumerRunner::lag() const {
  const std::lock_guard lock(mutex_);
  return {.position = position_, .oldest_pending = oldest_pending_, .waiting = waiting_};
}

// The loop of a worker: the only place here that catches exceptions.
awaitable<> ConsumerRunner::run() {
  while (!over()) {
    std::optional<Error> failure;
    try {
      co_await serve();
      co_return;
    } catch (const std::exception&) {
      failure = error_of(std::current_exception());
      sink_.reset();  // what it has in memory may differ from what was stored
    }
    if (over()) co_return;
    log::warn("a consumer of the event log failed", *failure, {{"consumer", claim_.consumer}});
    note_failure(failure->to_string(), "");
    co_await pause(backoff_.next());
  }
}

// Returns when the runner is told to stop, the claim is lost, or the consumer is gone.
awaitable<> ConsumerRunner::serve() {
  if (!sink_) sink_ = co_await factory_(claim_);
  if (!sink_) co_return;
  while (!over()) {
    co_await step();
    co_await asio::post(home_, asio::use_awaitable);  // let other coroutines of this loop run
  }
}

awaitable<> ConsumerRunner::step() {
  if (SteadyTime::now().time_since_epoch().count() >= valid_until_) co_return co_await pause(100ms);
  co_await save();  // what a lost connection left unsaved
  if (over()) co_return;
  auto tended = co_await sink_->tend();
  note_failure(delivery_failure_, std::move(tended.error));
  note_waiting();
  if (SteadyTime::now() < not_before_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(not_before_ - SteadyTime::now());
    co_return co_await pause(std::min(left, tended.again_after.value_or(left)));
  }
  auto gathered = co_await gather();
  if (gathered.wanted.empty()) {
    const bool at_end = gathered.chunks.empty();
    position_ = std::max(position_.load(), gathered.through);
    if (at_end) co_await wait_for_events(tended.again_after);
  } else {
    co_await hand_over(std::move(gathered));
  }
}

awaitable<ConsumerRunner::Gathered> ConsumerRunner::gather() {
  Gathered gathered{.chunks = {}, .wanted = {}, .through = position_};
  const auto most = sink_->max_batch();
  std::size_t looked = 0;
  auto after = gathered.through;
  while (gathered.wanted.size() < most && looked < kMaxLook && !over()) {
    const auto slice = co_await parts_.feed.read(after);
    if (slice.empty() && slice.through <= after) break;
    after = slice.through;
    if (slice.empty()) {
      gathered.through = after;  // the events up to there were removed
      continue;
    }
    gathered.chunks.push_back(slice.chunk);
    for (const auto& event : slice.events()) {
      if (gathered.wanted.size() == most) break;
      ++looked;
      gathered.through = event.seq;
      if (sink_->wants(event)) gathered.wanted.push_back(&event);
    }
  }
  parts_.skipped_total.Increment(static_cast<double>(looked - gathered.wanted.size()));
  co_return gathered;
}

awaitable<> ConsumerRunner::hand_over(Gathered gathered) {
  const auto& wanted = gathered.wanted;
  note_pending(wanted.front()->at);
  const auto handed = co_await sink_->deliver(wanted);
  const auto handled = std::min(handed.handled, wanted.size());
  parts_.delivered_total.Increment(static_cast<double>(handled));
  if (handled == wanted.size()) {
    delivered_ = gathered.through;
  } else {
    if (handled > 0) delivered_ = wanted[handled - 1]->seq;
    note_pending(wanted[handled]->at);
    not_before_ = SteadyTime::now() + (handed.retry_after ? *handed.retry_after : backoff_.next());
  }
  if (handed.error.empty()) backoff_.reset();
  delivery_failure_ = handed.error;
  note_failure(delivery_failure_, "");
  note_waiting();
  position_ = std::max(position_.load(), delivered_);
  co_await save();
}

awaitable<> ConsumerRunner::save() {
  if (delivered_ <= saved_) co_return;
  const auto before = SteadyTime::now();
  const auto position = delivered_;
  if (!co_await advance(parts_.database.pool(), claim_, position, options_.claim_duration)) {
    lost_ = true;
    log::warn("another node has taken over a consumer of the event log",
              {{"consumer", claim_.consumer}, {"token", claim_.token}});
    on_lost_();
    co_return;
  }
  saved_ = position;
  renewed(before + options_.claim_duration);
}

awaitable<> ConsumerRunner::wait_for_events(std::optional<std::chrono::milliseconds> tend_after) {
  note_pending(std::nullopt);
  const auto wait = std::min<std::chrono::milliseconds>(tend_after.value_or(kLongestWait), kLongestWait);
  const Mark idle(idle_);
  co_await parts_.feed.wait_beyond(position_, SteadyTime::now() + wait);
}

awaitable<> ConsumerRunner::pause(std::chrono::milliseconds delay) {
  const Mark idle(idle_);
  asio::steady_timer timer(home_, delay);
  co_await timer.async_wait(asio::use_awaitable);
}

void ConsumerRunner::note_pending(std::optional<TimePoint> oldest) {
  const std::lock_guard lock(mutex_);
  oldest_pending_ = oldest;
}

void ConsumerRunner::note_waiting() {
  const auto waiting = sink_->waiting();
  const std::lock_guard lock(mutex_);
  waiting_ = waiting;
}

void ConsumerRunner::note_failure(std::string delivering, std::string tending) {
  auto& text = delivering.empty() ? tending : delivering;
  text.resize(std::min(text.size(), kMaxFailureText));
  const std::lock_guard lock(mutex_);
  if (text.empty()) {
    failure_.reset();
  } else {
    failure_ = std::move(text);
  }
}

}  // namespace fencepost::outbox
