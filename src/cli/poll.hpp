// Polls the API until a condition holds.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string_view>

#include "base/error.hpp"

#include "cli/api_client.hpp"
#include "cli/text_table.hpp"

namespace fencepost::cli {

// Output, clock and sleep of the polling, so that tests can replace them.
struct PollWorld {
  Api& api;
  std::function<void(std::string_view)> print;
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<void(std::chrono::milliseconds)> sleep;
  // The width of the terminal. Asked for each line: the user may resize it while watching.
  std::function<std::size_t()> columns = [] { return kFullWidth; };
};

// The real one: standard output, the steady clock, a sleeping thread.
PollWorld terminal_world(Api& api);

inline constexpr std::chrono::milliseconds kPollInterval = std::chrono::seconds(1);  // at most
inline constexpr std::chrono::milliseconds kPollAnswerTime = std::chrono::seconds(10);

// Calls `look` repeatedly. Returns true once `look` returns true, false if the timeout passes first (none: no limit).
// `look` makes the pause between two calls, here or at the server. An error of `look` ends the polling, except that an
// unreachable server is retried for a minute: it may be restarting.
Result<bool> poll_until(const PollWorld& world, std::optional<std::chrono::milliseconds> timeout,
                        const std::function<Result<bool>()>& look);

// The pauses between looks at something that is often over soon: each is longer than the last, up to kPollInterval, and
// none goes beyond the timeout. `world` must outlive it.
class GrowingPause {
 public:
  GrowingPause(const PollWorld& world, std::chrono::milliseconds first,
               std::optional<std::chrono::milliseconds> timeout);

  // Call it before each look. Returns at once before the first.
  void rest();

 private:
  const PollWorld& world_;
  std::chrono::milliseconds next_;
  std::optional<std::chrono::steady_clock::time_point> end_;
  bool looked_ = false;
};

}  // namespace fencepost::cli
