// The current time, injected so that tests control it. Decisions about leases and due rows use the database's clock.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fencepost {

using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;

// Returns e.g. "2026-11-15T19:45:18.123456Z", the form in which the API writes times.
std::string to_rfc3339(TimePoint time);
// Reads any time of RFC 3339: "2026-11-15T19:45:18Z", with a fraction, with an offset such as +08:00. Digits of the
// fraction beyond microseconds are dropped. Nothing when the text is not such a time; a leap second is not one.
std::optional<TimePoint> parse_rfc3339(std::string_view text);

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

// A clock for tests: it moves only by `advance` and `set`. Any thread may call.
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
