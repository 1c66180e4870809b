#include "cli/api_watch.hpp"

#include <cstdio>
#include <thread>

#include <fmt/format.h>

namespace fencepost {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;  // with a server that does not answer

bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout ||
         error.kind == ErrorKind::kRateLimited;
}

}  // namespace

WatchWorld terminal_world(Api& api) {
  return {.api = api,
          .print =
              [](std::string_view text) {
                fmt::print("{}", text);
                std::fflush(stdout);
              },
          .now = [] { return std::chrono::steady_clock::now(); },
          .sleep = [](std::chrono::milliseconds pause) { std::this_thread::sleep_for(pause); }};
}

Result<bool> look_until(const WatchWorld& world, std::optional<std::chrono::milliseconds> timeout,
                        const std::function<Result<bool>()>& look) {
  const auto began = world.now();
  auto answered = began;
  while (true) {
    const auto over = look();
    if (over) {
      answered = world.now();
      if (*over) return true;
    } else if (!may_pass(over.error()) || world.now() - answered >= kPatience) {
      return fail(over.error());
    } else {
      world.sleep(kWatchRound);
    }
    if (timeout && world.now() - began >= *timeout) return false;
  }
}

}  // namespace fencepost
