#include "runtime/runtime.hpp"

#include <latch>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runtime/runtime_test_support.hpp"
#include "runtime/task_group.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::turns;
using testing::ElementsAre;

class runtime : public testing::Test {
 protected:
  runtime() { runtime_.start(); }
  ~runtime() override { runtime_.stop(); }

  // Runs body() on loop 0, and keeps it alive until it ends.
  void on_loop(std::function<awaitable<>()> body) { runtime_.run_on(0, body()); }

  Runtime runtime_{{.threads = 2}};
};

TEST_F(runtime, each_loop_has_a_thread_of_its_own_that_knows_its_index) {
  std::set<std::thread::id> threads;
  for (std::size_t i = 0; i < runtime_.size(); ++i) {
    const auto where = [](std::set<std::thread::id>& out) -> awaitable<std::size_t> {
      out.insert(std::this_thread::get_id());
      co_return Runtime::current();
    };
    EXPECT_EQ(runtime_.run_on(i, where(threads)), i);
  }
  EXPECT_EQ(threads.size(), 2U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(runtime, a_thread_that_runs_no_loop_has_no_index) {
  EXPECT_THROW(Runtime::current(), Exception);
}

TEST_F(runtime, run_on_gives_the_exception_of_the_coroutine) {
  const auto bad = []() -> awaitable<int> {
    throw std::invalid_argument("no");
    co_return 1;
  };
  EXPECT_THROW(runtime_.run_on(1, bad()), std::invalid_argument);
}

TEST_F(runtime, offload_runs_on_the_pool_and_returns_the_result_on_the_loop) {
  on_loop([&]() -> awaitable<> {
    const auto home = std::this_thread::get_id();
    std::thread::id there;
    const auto text = co_await runtime_.offload([&] {
      there = std::this_thread::get_id();
      return std::make_unique<std::string>("signed");
    });
    EXPECT_EQ(*text, "signed");
    EXPECT_NE(there, home);
    EXPECT_EQ(std::this_thread::get_id(), home);
  });
}

TEST_F(runtime, offload_may_have_no_result) {
  on_loop([&]() -> awaitable<> {
    bool ran = false;
    co_await runtime_.offload([&] { ran = true; });
    EXPECT_TRUE(ran);
  });
}

TEST_F(runtime, offload_gives_the_exception_of_the_work) {
  on_loop([&]() -> awaitable<> {
    std::string code;
    try {
      co_await runtime_.offload([]() -> int { throw Exception(invalid("bad_key", "not a key")); });
    } catch (const Exception& e) {
      code = e.error().code;
    }
    EXPECT_EQ(code, "bad_key");
  });
}

TEST_F(runtime, the_loop_goes_on_while_work_is_offloaded) {
  on_loop([&]() -> awaitable<> {
    std::latch loop_ran(1);
    asio::post(co_await this_executor(), [&] { loop_ran.count_down(); });
    co_await runtime_.offload([&] { loop_ran.wait(); });
  });
}

TEST_F(runtime, a_cancelled_caller_of_offload_returns_at_once_and_the_result_is_dropped) {
  std::latch release(1);
  std::atomic<bool> work_done{false};
  on_loop([&]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 1);
    boost::system::error_code ec;
    const auto caller = [&]() -> awaitable<> {
      try {
        co_await runtime_.offload([&] {
          release.wait();
          work_done = true;
          return std::make_unique<int>(1);
        });
      } catch (const boost::system::system_error& e) {
        ec = e.code();
      }
    };
    EXPECT_TRUE(group.spawn(caller()));
    co_await turns();
    co_await group.stop(0ms);
    EXPECT_EQ(ec, asio::error::operation_aborted);
    EXPECT_FALSE(work_done);
  });
  release.count_down();
  EXPECT_TRUE(eventually([&] { return work_done.load(); }));
  // The result is delivered to loop 0 before this coroutine runs there.
  on_loop([&]() -> awaitable<> { co_await runtime_.offload([] {}); });
}

TEST_F(runtime, on_every_loop_runs_on_all_of_them_at_the_same_time) {
  on_loop([&]() -> awaitable<> {
    std::vector<std::size_t> ran(2, 99);
    std::atomic<int> arrived{0};
    co_await runtime_.on_every_loop([&](std::size_t i) -> awaitable<> {
      ran[i] = Runtime::current();
      ++arrived;
      EXPECT_TRUE(co_await test::comes_true([&] { return arrived == 2; }));
    });
    EXPECT_THAT(ran, ElementsAre(0, 1));
    EXPECT_EQ(Runtime::current(), 0U);
  });
}

TEST_F(runtime, on_every_loop_waits_for_all_and_then_gives_the_exception) {
  on_loop([&]() -> awaitable<> {
    std::atomic<bool> other_finished{false};
    std::string code;
    try {
      co_await runtime_.on_every_loop([&](std::size_t i) -> awaitable<> {
        if (i == 0) throw Exception(unavailable("down", "it is down"));
        co_await turns();
        other_finished = true;
      });
    } catch (const Exception& e) {
      code = e.error().code;
    }
    EXPECT_EQ(code, "down");
    EXPECT_TRUE(other_finished);
  });
}

TEST_F(runtime, on_every_loop_gives_the_exception_of_a_task_that_is_no_coroutine) {
  on_loop([&]() -> awaitable<> {
    bool thrown = false;
    try {
      co_await runtime_.on_every_loop([](std::size_t) -> awaitable<> { throw std::logic_error("no coroutine"); });
    } catch (const std::logic_error&) {
      thrown = true;
    }
    EXPECT_TRUE(thrown);
  });
}

TEST_F(runtime, tasks_on_every_loop_outlive_a_caller_that_was_cancelled) {
  std::atomic<bool> open{false};
  std::atomic<int> finished{0};
  on_loop([&]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 1);
    const auto caller = [&]() -> awaitable<> {
      const auto mark = std::make_shared<int>(1);
      co_await runtime_.on_every_loop([&open, &finished, mark](std::size_t) -> awaitable<> {
        co_await test::comes_true([&] { return open.load(); });
        finished += *mark;  // the closure must still be alive
      });
    };
    EXPECT_TRUE(group.spawn(caller()));
    co_await turns();
    co_await group.stop(0ms);
    EXPECT_EQ(finished, 0);
  });
  open = true;
  EXPECT_TRUE(eventually([&] { return finished == 2; }));
}

TEST_F(runtime, may_be_stopped_twice_and_with_work_in_flight) {
  std::latch begun(1);
  asio::co_spawn(
      runtime_.loop(1),
      [](std::latch& latch) -> awaitable<> {
        latch.count_down();
        co_await test::hang();
      }(begun),
      asio::detached);
  begun.wait();
  runtime_.stop();
  runtime_.stop();
}

TEST(run_blocking, gives_the_result_or_the_exception) {
  const auto answer = [](bool good) -> awaitable<int> {
    co_await turns(3);
    if (!good) throw std::invalid_argument("no");
    co_return 42;
  };
  EXPECT_EQ(run_blocking(answer(true)), 42);
  EXPECT_THROW(run_blocking(answer(false)), std::invalid_argument);
}

}  // namespace
}  // namespace fencepost
