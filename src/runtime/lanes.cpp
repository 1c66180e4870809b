#include "runtime/lanes.hpp"

#include <boost/asio/post.hpp>

#include "base/error.hpp"
#include "base/stable_hash.hpp"
#include "runtime/log.hpp"

namespace fencepost {

struct Lanes::Lane {
  Lane(Executor executor, std::size_t limit) : home(executor), queue(executor, limit), group(executor, "lane", 1) {}

  Executor home;
  BoundedQueue<Task> queue;  // on the loop
  TaskGroup group;
  std::atomic<std::size_t> waiting{0};  // posted and not yet begun, counted by the producers
};

Lanes::Lanes(Runtime& runtime, Options options, Metrics& metrics)
    : runtime_(runtime),
      options_(std::move(options)),
      refused_total_(
          metrics.counter("lane_refused_total", "Tasks turned away by a full lane", {{"lanes", options_.name}})),
      failed_total_(metrics.counter("lane_failed_total", "Tasks that threw", {{"lanes", options_.name}})) {
  for (std::size_t i = 0; i < options_.count; ++i) {
    lanes_.push_back(std::make_unique<Lane>(runtime.executor(i % runtime.size()), options_.queue_limit));
  }
}

Lanes::~Lanes() = default;

void Lanes::start() {
  for (auto& lane : lanes_) {
    asio::post(lane->home, [this, &lane = *lane] {
      if (!lane.group.spawn(serve(lane))) log::error("lane did not start", {{"lanes", options_.name}});
    });
  }
}

awaitable<> Lanes::stop(std::chrono::milliseconds grace) {
  stopping_ = true;
  const auto deadline = std::chrono::steady_clock::now() + grace;
  co_await runtime_.on_every_loop([this, deadline](std::size_t loop) { return stop_lanes_of(loop, deadline); });
}

awaitable<> Lanes::stop_lanes_of(std::size_t loop, std::chrono::steady_clock::time_point deadline) {
  // Behind whatever was posted before: those tasks were accepted.
  co_await asio::post(runtime_.executor(loop), asio::use_awaitable);
  for (auto& lane : lanes_) {
    if (lane->home == runtime_.executor(loop)) lane->queue.close();
  }
  for (auto& lane : lanes_) {
    if (lane->home != runtime_.executor(loop)) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    co_await lane->group.stop(std::max(left, std::chrono::milliseconds(0)));
    if (const auto dropped = lane->queue.size(); dropped > 0) {
      log::warn("tasks dropped by stop", {{"lanes", options_.name}, {"tasks", dropped}});
    }
  }
}

bool Lanes::post(std::string_view key, Task task) {
  auto& lane = *lanes_[lane_of(key)];
  // Reserved before it is posted, so that a flood from other threads cannot outrun the limit.
  if (lane.waiting.fetch_add(1) >= options_.queue_limit || stopping_) {
    lane.waiting.fetch_sub(1);
    refused_total_.Increment();
    return false;
  }
  asio::post(lane.home, [&lane, task = std::move(task)]() mutable {
    if (!lane.queue.try_push(std::move(task))) lane.waiting.fetch_sub(1);
  });
  return true;
}

std::size_t Lanes::lane_of(std::string_view key) const {
  return stable_hash(key) % lanes_.size();
}

Executor Lanes::executor_of(std::string_view key) const {
  return lanes_[lane_of(key)]->home;
}

awaitable<> Lanes::serve(Lane& lane) {
  while (true) {
    auto tasks = co_await lane.queue.pop_some(1);
    if (tasks.empty()) co_return;
    lane.waiting.fetch_sub(1);
    std::optional<Error> failure;
    try {
      co_await tasks.front()();
    } catch (const std::exception&) {
      failure = error_of(std::current_exception());
    }
    if (failure) {
      failed_total_.Increment();
      log::error("task failed", *failure, {{"lanes", options_.name}});
    }
  }
}

}  // namespace fencepost
