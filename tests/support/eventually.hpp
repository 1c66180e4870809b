// Waiting for something that another thread, process or server will do.
//
//   EXPECT_TRUE(eventually([&] { return proxy.open() == 0; }));
//
// Prefer something that tells you (a future, a condition variable, a coroutine); this is for what can only be
// asked.
#pragma once

#include <chrono>
#include <concepts>

#include <poll.h>

namespace fencepost::test {

inline constexpr std::chrono::seconds kPatience{20};

// Asks every few milliseconds until `condition` holds (true) or `patience` is over (false).
template <std::predicate Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds patience = kPatience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace fencepost::test
