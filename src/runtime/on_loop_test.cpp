#include "runtime/on_loop.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runtime/runtime.hpp"

namespace fencepost {
namespace {

struct Loops {
  Loops() { runtime.start(); }
  ~Loops() { runtime.stop(); }
  Runtime runtime{{.threads = 2}};
};

awaitable<std::size_t> where() {
  co_return Runtime::current();
}

// Calls from loop 0, and returns the loops on which the call ran and the answer arrived.
awaitable<std::pair<std::size_t, std::size_t>> ask(Executor target) {
  const auto there = co_await on_loop(target, [] { return where(); });
  co_return std::pair(there, Runtime::current());
}

TEST(on_loop, runs_there_and_answers_here) {
  Loops loops;
  EXPECT_EQ(loops.runtime.run_on(0, ask(loops.runtime.executor(1))), std::pair(std::size_t{1}, std::size_t{0}));
}

TEST(on_loop, runs_at_once_on_its_own_loop) {
  Loops loops;
  EXPECT_EQ(loops.runtime.run_on(0, ask(loops.runtime.executor(0))), std::pair(std::size_t{0}, std::size_t{0}));
}

awaitable<> broken() {
  throw Exception(invalid("broken", "broken"));
  co_return;
}

awaitable<std::string> ask_broken(Executor target) {
  std::string code;
  try {
    co_await on_loop(target, [] { return broken(); });
  } catch (const Exception& e) {
    code = e.error().code;
  }
  co_return code;
}

TEST(on_loop, carries_exceptions_back) {
  Loops loops;
  EXPECT_EQ(loops.runtime.run_on(0, ask_broken(loops.runtime.executor(1))), "broken");
}

}  // namespace
}  // namespace fencepost
