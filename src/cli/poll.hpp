// Asking the API about something again and again, until it is over.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/error.hpp"

#include "cli/api_client.hpp"

namespace fencepost::cli {

// What surrounds the polling, so that tests own it.
struct PollWorld {
  Api& api;
  std::function<void(std::string_view)> print;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<void(std::chrono::milliseconds)> sleep;
};

// The real one: standard output, the clock, the thread.
PollWorld terminal_world(Api& api);

inline constexpr std::chrono::milliseconds kPollInterval = std::chrono::seconds(1);  // at most
inline constexpr std::chrono::milliseconds kPollAnswerTime = std::chrono::seconds(10);

// Calls `look` again and again: true once it returns true, false when the timeout passes first (none: no limit). The
// pause between two calls is made by `look`, here or at the server. An error of `look` ends the polling; but a server
// that cannot be reached may be restarting, so it is given a minute.
Result<bool> poll_until(const PollWorld& world, std::optional<std::chrono::milliseconds> timeout,
                        const std::function<Result<bool>()>& look);

}  // namespace fencepost::cli
