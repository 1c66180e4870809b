// Looking at something through the API until it is over.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/error.hpp"

#include "cli/api_client.hpp"

namespace fencepost {

// What surrounds a watch, so that tests own it.
struct WatchWorld {
  Api& api;
  std::function<void(std::string_view)> print;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<void(std::chrono::milliseconds)> sleep;
};

// The real one: standard output, the clock, the thread.
WatchWorld terminal_world(Api& api);

inline constexpr std::chrono::milliseconds kWatchRound = std::chrono::seconds(1);        // at most between two looks
inline constexpr std::chrono::milliseconds kWatchAnswerTime = std::chrono::seconds(10);  // of one look

// Looks again and again: true when `look` says that it has seen the end, false when the time is over (none: as long as
// it takes). Whoever looks waits as well, there or at the server. The error of a look ends it; but a server that cannot
// be reached is waited for, up to a minute, since a node may restart meanwhile.
Result<bool> look_until(const WatchWorld& world, std::optional<std::chrono::milliseconds> timeout,
                        const std::function<Result<bool>()>& look);

}  // namespace fencepost
