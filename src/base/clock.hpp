// Time, handed in so that tests own it. Decisions about leases and due rows use the database's clock instead.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

namespace fencepost {

using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;

// "2026-11-15T19:45:18.123456Z": how the API writes times.
std::string to_rfc3339(TimePoint time);

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  }
};

// Stands still until told otherwise. Safe to read from any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{}) : micros_(start.time_since_epoch().count()) {}

  TimePoint now() const override { return TimePoint{std::chrono::microseconds{micros_.load()}}; }
  void advance(std::chrono::microseconds by) { micros_ += by.count(); }
  void set(TimePoint to) { micros_ = to.time_since_epoch().count(); }

 private:
  std::atomic<std::int64_t> micros_;
};

}  // namespace fencepost
