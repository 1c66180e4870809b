#include "runtime/bounded_queue.hpp"

#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/runtime_test_support.hpp"
#include "runtime/task_group.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::on_loop;
using test::turns;
using testing::ElementsAre;
using testing::IsEmpty;

template <class T>
awaitable<std::vector<T>> pop_some(BoundedQueue<T>& queue, std::size_t most) {
  co_await queue.wait();
  co_return queue.take(most);
}

// Takes and records batches until the queue is drained or the consumer is cancelled.
struct Taker {
  BoundedQueue<int>& queue;
  std::vector<std::vector<int>> batches;
  bool cancelled = false;

  awaitable<> run(std::size_t most) {
    try {
      while (true) {
        auto batch = co_await pop_some(queue, most);
        batches.push_back(batch);
        if (batch.empty()) co_return;
      }
    } catch (const boost::system::system_error& e) {
      cancelled = e.code() == asio::error::operation_aborted;
    }
  }
};

TEST(bounded_queue, hands_an_item_at_once_to_a_consumer_that_waits) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    BoundedQueue<int> queue(executor, 10);
    Taker taker{queue, {}};
    TaskGroup group(executor, "test", 1);
    EXPECT_TRUE(group.spawn(taker.run(10)));
    co_await turns();
    EXPECT_TRUE(queue.try_push(7));
    co_await turns();
    EXPECT_THAT(taker.batches, ElementsAre(ElementsAre(7)));
    queue.close();
    co_await group.stop(24h);
  });
}

TEST(bounded_queue, gathers_a_batch_while_the_consumer_is_busy) {
  on_loop([]() -> awaitable<> {
    BoundedQueue<int> queue(co_await this_executor(), 10);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue.try_push(int{i}));
    const auto first = co_await pop_some(queue, 3);
    EXPECT_THAT(first, ElementsAre(0, 1, 2));
    const auto second = co_await pop_some(queue, 3);
    EXPECT_THAT(second, ElementsAre(3, 4));
    EXPECT_EQ(queue.size(), 0U);
  });
}

TEST(bounded_queue, several_items_pushed_without_a_wait_wake_the_consumer_once) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    BoundedQueue<int> queue(executor, 10);
    Taker taker{queue, {}};
    TaskGroup group(executor, "test", 1);
    EXPECT_TRUE(group.spawn(taker.run(10)));
    co_await turns();
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.try_push(int{i}));
    co_await turns();
    EXPECT_THAT(taker.batches, ElementsAre(ElementsAre(0, 1, 2)));
    queue.close();
    co_await group.stop(24h);
  });
}

TEST(bounded_queue, refuses_when_full_and_leaves_the_item_with_the_caller) {
  on_loop([]() -> awaitable<> {
    BoundedQueue<std::unique_ptr<int>> queue(co_await this_executor(), 1);
    EXPECT_TRUE(queue.try_push(std::make_unique<int>(1)));
    auto second = std::make_unique<int>(2);
    EXPECT_FALSE(queue.try_push(std::move(second)));
    EXPECT_TRUE(second != nullptr && *second == 2);  // NOLINT(bugprone-use-after-move): a refused item is not moved
    const auto taken = co_await pop_some(queue, 1);
    EXPECT_EQ(taken.size(), 1U);
    EXPECT_TRUE(queue.try_push(std::move(second)));
  });
}

TEST(bounded_queue, returns_the_remaining_items_after_close_and_then_nothing) {
  on_loop([]() -> awaitable<> {
    BoundedQueue<int> queue(co_await this_executor(), 10);
    EXPECT_TRUE(queue.try_push(1));
    EXPECT_TRUE(queue.try_push(2));
    queue.close();
    EXPECT_TRUE(queue.closed());
    EXPECT_FALSE(queue.try_push(3));
    const auto first = co_await pop_some(queue, 1);
    EXPECT_THAT(first, ElementsAre(1));
    const auto second = co_await pop_some(queue, 1);
    EXPECT_THAT(second, ElementsAre(2));
    const auto nothing = co_await pop_some(queue, 1);
    EXPECT_THAT(nothing, IsEmpty());
  });
}

TEST(bounded_queue, close_wakes_a_consumer_that_waits) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    BoundedQueue<int> queue(executor, 10);
    Taker taker{queue, {}};
    TaskGroup group(executor, "test", 1);
    EXPECT_TRUE(group.spawn(taker.run(10)));
    co_await turns();
    queue.close();
    co_await group.stop(24h);
    EXPECT_THAT(taker.batches, ElementsAre(IsEmpty()));
    EXPECT_FALSE(taker.cancelled);
  });
}

TEST(bounded_queue, still_works_after_its_consumer_was_cancelled) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    BoundedQueue<int> queue(executor, 10);
    Taker taker{queue, {}};
    TaskGroup group(executor, "test", 1);
    EXPECT_TRUE(group.spawn(taker.run(10)));
    co_await turns();
    co_await group.stop(0ms);
    EXPECT_TRUE(taker.cancelled);
    EXPECT_TRUE(queue.try_push(1));
    const auto next = co_await pop_some(queue, 10);
    EXPECT_THAT(next, ElementsAre(1));
  });
}

TEST(bounded_queue, an_item_pushed_during_cancellation_is_not_lost) {
  on_loop([]() -> awaitable<> {
    const auto executor = co_await this_executor();
    BoundedQueue<int> queue(executor, 10);
    Taker taker{queue, {}};
    TaskGroup group(executor, "test", 1);
    EXPECT_TRUE(group.spawn(taker.run(10)));
    co_await turns();
    group.cancel();
    EXPECT_TRUE(queue.try_push(1));
    co_await group.stop(24h);
    EXPECT_THAT(taker.batches, ElementsAre(ElementsAre(1)));
    EXPECT_TRUE(taker.cancelled);
  });
}

}  // namespace
}  // namespace fencepost
