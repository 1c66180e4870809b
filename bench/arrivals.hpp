// What a receiver of events measures: how many arrive, how fast, and how old they are. The age of an event is the time
// from its row's insert (the envelope's `time`) to its arrival.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace fencepost::bench {

class Arrivals {
 public:
  // The envelopes in a text, one or several. Members come in one order, so each "id" is followed by its "time".
  // `is_new(id)` says whether an event counts.
  template <class IsNew>
  void count(std::string_view text, IsNew is_new) {
    constexpr std::string_view kId = R"("specversion":"1.0","id":")";
    constexpr std::string_view kTime = R"("time":")";
    const auto now = std::chrono::steady_clock::now();
    for (auto at = text.find(kId); at != std::string_view::npos; at = text.find(kId, at)) {
      at += kId.size();
      const auto time = text.find(kTime, at);
      if (time == std::string_view::npos) return;
      if (!is_new(text.substr(at, text.find('"', at) - at))) continue;
      if (ages_us_.empty()) first_ = now;
      last_ = now;
      ages_us_.push_back(now_us() - micros_of(std::string(text.substr(time + kTime.size(), 26))));
    }
  }
  void count(std::string_view text) {
    count(text, [](std::string_view) { return true; });
  }

  std::size_t size() const { return ages_us_.size(); }

  // "events N seconds S p50 MICROS p99 MICROS", the seconds from the first event to the last.
  std::string summary() {
    std::ranges::sort(ages_us_);
    return fmt::format("events {} seconds {:.3f} p50 {} p99 {}", size(),
                       std::chrono::duration<double>(last_ - first_).count(), age_at(0.5), age_at(0.99));
  }

 private:
  std::int64_t age_at(double share) const {
    return size() == 0 ? 0 : ages_us_[static_cast<std::size_t>(share * static_cast<double>(size() - 1))];
  }
  static std::int64_t now_us() {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  // "2026-11-15T19:45:18.123456" in microseconds since 1970.
  static std::int64_t micros_of(const std::string& text) {
    std::tm parts{};
    if (text.size() < 26 || ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return 0;
    std::int64_t micros = 0;
    std::from_chars(text.data() + 20, text.data() + 26, micros);
    return static_cast<std::int64_t>(::timegm(&parts)) * 1'000'000 + micros;
  }

  std::vector<std::int64_t> ages_us_;
  std::chrono::steady_clock::time_point first_, last_;
};

}  // namespace fencepost::bench
