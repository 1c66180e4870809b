#include "runtime/task_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/async_result.hpp>

#include "base/error.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::Gate;
using test::hang;
using test::on_loop;
using test::turns;
using testing::HasSubstr;
using testing::Not;

awaitable<> count(int& counter) {
  ++counter;
  co_return;
}

awaitable<> fail_with(Error error) {
  throw Exception(std::move(error));
  co_return;
}

TEST(task_group, runs_its_tasks_and_removes_finished_ones) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 2);
    int ran = 0;
    EXPECT_TRUE(group.spawn(count(ran)));
    EXPECT_TRUE(group.spawn(count(ran)));
    co_await turns();
    EXPECT_EQ(ran, 2);
    EXPECT_EQ(group.size(), 0U);
    co_await group.stop(0ms);
  });
}

TEST(task_group, refuses_more_than_its_limit_until_one_has_finished) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 1);
    Gate gate(co_await this_executor());
    int ran = 0;
    EXPECT_TRUE(group.spawn(gate.pass()));
    EXPECT_TRUE(group.full());
    EXPECT_FALSE(group.spawn(count(ran)));
    gate.open();
    co_await turns();
    EXPECT_EQ(ran, 0);
    EXPECT_TRUE(group.spawn(count(ran)));
    co_await group.stop(24h);
    EXPECT_EQ(ran, 1);
  });
}

TEST(task_group, refuses_once_it_stops) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 10);
    int ran = 0;
    co_await group.stop(0ms);
    EXPECT_TRUE(group.stopping());
    EXPECT_FALSE(group.spawn(count(ran)));
    co_await turns();
    EXPECT_EQ(ran, 0);
  });
}

TEST(task_group, stop_waits_for_running_tasks) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    TaskGroup group(executor, "test", 10);
    Gate gate(executor);
    int finished = 0;
    const auto work = [&]() -> awaitable<> {
      co_await gate.pass();
      co_await turns();
      ++finished;
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(group.spawn(work()));
    asio::post(executor, [&] { gate.open(); });
    co_await group.stop(24h);
    EXPECT_EQ(finished, 3);
    EXPECT_EQ(group.size(), 0U);
  });
}

TEST(task_group, stop_cancels_tasks_that_run_longer_than_the_grace) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 10);
    int aborted = 0;
    const auto work = [&]() -> awaitable<> {
      try {
        co_await hang();
      } catch (const boost::system::system_error& e) {
        if (e.code() == asio::error::operation_aborted) ++aborted;
      }
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(group.spawn(work()));
    co_await turns();
    co_await group.stop(1ms);
    EXPECT_EQ(aborted, 3);
    EXPECT_EQ(group.size(), 0U);
  });
}

TEST(task_group, a_task_that_continues_after_cancellation_is_cancelled_again) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 1);
    int asked = 0;
    const auto stubborn = [&]() -> awaitable<> {
      co_await asio::this_coro::throw_if_cancelled(false);
      while (asked < 3) {
        asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
        co_await never.async_wait(use_tuple);
        ++asked;
      }
    };
    EXPECT_TRUE(group.spawn(stubborn()));
    co_await turns();
    co_await group.stop(0ms);
    EXPECT_EQ(asked, 3);
  });
}

// An operation that completes inside emit when it is cancelled.
awaitable<> end_inside_emit() {
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<decltype(token), void()>(
      [](auto handler) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        auto kept = std::make_shared<decltype(handler)>(std::move(handler));
        slot.assign([kept](asio::cancellation_type) {
          auto now = std::move(*kept);
          std::move(now)();
        });
      },
      token);
}

TEST(task_group, tasks_may_finish_while_they_are_being_cancelled) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 10);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(group.spawn(end_inside_emit()));
    co_await turns();
    EXPECT_EQ(group.size(), 5U);
    group.cancel();
    EXPECT_EQ(group.size(), 0U);
    co_await group.stop(0ms);
  });
}

TEST(task_group, cancel_neither_waits_nor_refuses_new_tasks) {
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "test", 10);
    int ran = 0;
    EXPECT_TRUE(group.spawn(hang()));
    co_await turns();
    group.cancel();
    EXPECT_TRUE(group.spawn(count(ran)));
    co_await turns();
    EXPECT_EQ(ran, 1);
    EXPECT_EQ(group.size(), 0U);
    co_await group.stop(0ms);
  });
}

TEST(task_group, logs_a_task_that_throws_and_counts_it_as_finished) {
  test::LogText text;
  on_loop([]() -> awaitable<> {
    TaskGroup group(co_await this_executor(), "followers", 10);
    EXPECT_TRUE(group.spawn(fail_with(internal("broken", "it broke"))));
    co_await turns();
    EXPECT_EQ(group.size(), 0U);
    co_await group.stop(0ms);
  });
  const auto log = text.take();
  EXPECT_THAT(log, HasSubstr("followers"));
  EXPECT_THAT(log, HasSubstr("broken"));
}

TEST(task_group, while_stopping_logs_failures_but_not_cancellations) {
  test::LogText text;
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    TaskGroup group(executor, "followers", 10);
    Gate gate(executor);
    const auto fails_late = [&]() -> awaitable<> {
      co_await gate.pass();
      co_await fail_with(internal("broken", "it broke"));
    };
    EXPECT_TRUE(group.spawn(hang()));
    EXPECT_TRUE(group.spawn(fails_late()));
    co_await turns();
    asio::post(executor, [&] { gate.open(); });
    co_await group.stop(5ms);
  });
  const auto log = text.take();
  EXPECT_THAT(log, HasSubstr("broken"));
  EXPECT_THAT(log, Not(HasSubstr("Operation canceled")));
}

}  // namespace
}  // namespace fencepost
