// Waits until another thread, process or server has done something.
//
//   EXPECT_TRUE(eventually([&] { return proxy.open() == 0; }));
//
// Prefer a future, a condition variable or a coroutine. Use this only for a state that must be polled.
#pragma once

#include <chrono>
#include <concepts>

#include <poll.h>

namespace fencepost::test {

inline constexpr std::chrono::seconds kPatience{20};

// Polls every few milliseconds. Returns true when `condition` holds, false when `patience` is over.
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
