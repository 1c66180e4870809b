#include "runtime/completion.hpp"

#include <gtest/gtest.h>

#include "runtime/runtime_test_support.hpp"
#include "runtime/task_group.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::on_loop;
using test::turns;

Deadline in(std::chrono::milliseconds delay) {
  return std::chrono::steady_clock::now() + delay;
}

TEST(completion, delivers_the_value_to_the_waiting_coroutine) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    Completion<std::string> answer(executor);
    asio::post(executor, [&] { answer.complete("yes"); });
    EXPECT_TRUE(co_await answer.wait());
    EXPECT_EQ(answer.value(), "yes");
  });
}

TEST(completion, does_not_wait_for_a_value_that_is_there) {
  on_loop([]() -> awaitable<> {
    Completion<int> answer(co_await this_executor());
    answer.complete(1);
    EXPECT_TRUE(answer.done());
    EXPECT_TRUE(co_await answer.wait(in(-1s)));
  });
}

TEST(completion, the_first_value_counts) {
  on_loop([]() -> awaitable<> {
    Completion<int> answer(co_await this_executor());
    answer.complete(1);
    answer.complete(2);
    EXPECT_TRUE(co_await answer.wait());
    EXPECT_EQ(answer.value(), 1);
  });
}

TEST(completion, gives_up_at_the_deadline) {
  on_loop([]() -> awaitable<> {
    Completion<int> answer(co_await this_executor());
    const auto deadline = in(5ms);
    EXPECT_FALSE(co_await answer.wait(deadline));
    EXPECT_GE(std::chrono::steady_clock::now(), deadline);
    EXPECT_FALSE(answer.done());
  });
}

TEST(completion, a_value_may_come_after_the_waiter_gave_up) {
  on_loop([]() -> awaitable<> {
    auto answer = std::make_shared<Completion<int>>(co_await this_executor());
    EXPECT_FALSE(co_await answer->wait(in(0ms)));
    const auto other_side = std::exchange(answer, nullptr);
    other_side->complete(1);
    EXPECT_EQ(other_side->value(), 1);
  });
}

TEST(completion, may_be_awaited_again_after_a_deadline) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    Completion<int> answer(executor);
    EXPECT_FALSE(co_await answer.wait(in(0ms)));
    asio::steady_timer later(executor, 5ms);
    later.async_wait([&](boost::system::error_code) { answer.complete(1); });
    EXPECT_TRUE(co_await answer.wait());
    EXPECT_EQ(answer.value(), 1);
  });
}

TEST(completion, a_value_that_comes_at_the_deadline_counts) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    Completion<int> answer(executor);
    TaskGroup group(executor, "test", 1);
    bool got = false;
    const auto waiter = [&]() -> awaitable<> { got = co_await answer.wait(in(0ms)); };
    EXPECT_TRUE(group.spawn(waiter()));
    // The timer has expired or is about to expire, but its handler has not run yet.
    answer.complete(1);
    co_await group.stop(24h);
    EXPECT_TRUE(got);
  });
}

TEST(completion, a_cancelled_waiter_leaves_with_operation_aborted) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    const auto answer = std::make_shared<Completion<int>>(executor);
    TaskGroup group(executor, "test", 1);
    boost::system::error_code ec;
    const auto waiter = [&]() -> awaitable<> {
      try {
        co_await answer->wait();
      } catch (const boost::system::system_error& e) {
        ec = e.code();
      }
    };
    EXPECT_TRUE(group.spawn(waiter()));
    co_await turns();
    co_await group.stop(0ms);
    EXPECT_EQ(ec, asio::error::operation_aborted);
    answer->complete(1);
    EXPECT_TRUE(answer->done());
  });
}

TEST(completion, a_value_that_comes_with_the_cancellation_is_delivered) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    Completion<int> answer(executor);
    TaskGroup group(executor, "test", 1);
    bool got = false;
    const auto waiter = [&]() -> awaitable<> { got = co_await answer.wait(); };
    EXPECT_TRUE(group.spawn(waiter()));
    co_await turns();
    group.cancel();
    answer.complete(1);
    co_await group.stop(24h);
    EXPECT_TRUE(got);
  });
}

}  // namespace
}  // namespace fencepost
