#include "cli/poll.hpp"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fencepost::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kUnreachableLimit = 60s;

bool may_pass(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout ||
         error.kind == ErrorKind::kRateLimited;
}

}  // namespace

PollWorld terminal_world(Api& api) {
  return {.api = api,
          .print =
              [](std::string_view text) {
                fmt::print("{}", text);
                std::fflush(stdout);
              },
          .now = [] { return std::chrono::steady_clock::now(); },
          .sleep = [](std::chrono::milliseconds pause) { std::this_thread::sleep_for(pause); },
          .columns = terminal_columns};
}

Result<bool> poll_until(const PollWorld& world, std::optional<std::chrono::milliseconds> timeout,
                        const std::function<Result<bool>()>& look) {
  const auto began = world.now();
  auto answered = began;
  while (true) {
    const auto over = look();
    if (over) {
      answered = world.now();
      if (*over) return true;
    } else if (!may_pass(over.error()) || world.now() - answered >= kUnreachableLimit) {
      return fail(over.error());
    } else {
      world.sleep(kPollInterval);
    }
    if (timeout && world.now() - began >= *timeout) return false;
  }
}

GrowingPause::GrowingPause(const PollWorld& world, std::chrono::milliseconds first,
                           std::optional<std::chrono::milliseconds> timeout)
    : world_(world), next_(first) {
  if (timeout) end_ = world.now() + *timeout;
}

void GrowingPause::rest() {
  if (!std::exchange(looked_, true)) return;
  auto pause = next_;
  if (end_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - world_.now());
    pause = std::clamp(left, std::chrono::milliseconds(1), pause);
  }
  world_.sleep(pause);
  next_ = std::min(2 * next_, kPollInterval);
}

}  // namespace fencepost::cli
