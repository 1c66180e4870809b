#include "runtime/batcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/gather.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::ElementsAre;

// A batcher of one lane on loop 0. Its handler doubles numbers, records its batches, and waits while `held` is true.
struct Fixture {
  explicit Fixture(BatcherOptions options = {.name = "doubler", .lanes = 1})
      : batcher(
            runtime, std::move(options), [this](std::vector<int> items) { return handle(std::move(items)); }, metrics) {
    runtime.start();
    batcher.start();
  }
  ~Fixture() {
    held = false;
    runtime.run_on(0, batcher.stop(runtime, 10s));
    runtime.stop();
  }

  awaitable<std::vector<int>> handle(std::vector<int> items) {
    {
      const std::scoped_lock lock(mutex);
      batches.push_back(items);
    }
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (held) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    for (auto& item : items) {
      if (item < 0) throw Exception(invalid("negative", "no negative numbers"));
      item *= 2;
    }
    co_return items;
  }

  std::size_t batch_count() {
    const std::scoped_lock lock(mutex);
    return batches.size();
  }

  // Submits from the given loop, in the background.
  std::future<int> submit(std::size_t loop, int item, std::string_view key = "key") {
    return asio::co_spawn(runtime.loop(loop), batcher.submit(key, item), asio::use_future);
  }

  Runtime runtime{{.threads = 2}};
  Metrics metrics;
  std::atomic<bool> held{false};
  std::mutex mutex;
  std::vector<std::vector<int>> batches;
  Batcher<int, int> batcher;
};

TEST(batcher, answers_each_on_its_own_loop) {
  Fixture fixture;
  EXPECT_EQ(fixture.submit(0, 1).get(), 2);
  EXPECT_EQ(fixture.submit(1, 2).get(), 4);
}

TEST(batcher, items_that_arrive_during_a_batch_form_the_next_one) {
  Fixture fixture;
  fixture.held = true;
  auto first = fixture.submit(1, 1);
  ASSERT_TRUE(eventually([&] { return fixture.batch_count() == 1; }));
  std::vector<std::future<int>> rest;
  for (int i = 2; i <= 5; ++i) rest.push_back(fixture.submit(0, i));
  // Posted after the submits: once it has run, the items are queued in order.
  fixture.runtime.run_on(0, test::turns());
  fixture.held = false;
  EXPECT_EQ(first.get(), 2);
  for (int i = 2; i <= 5; ++i) EXPECT_EQ(rest[static_cast<std::size_t>(i) - 2].get(), 2 * i);
  EXPECT_THAT(fixture.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3, 4, 5)));
}

TEST(batcher, a_handler_that_throws_fails_its_batch_and_nothing_else) {
  Fixture fixture;
  EXPECT_THROW(fixture.submit(1, -1).get(), Exception);
  EXPECT_EQ(fixture.submit(1, 3).get(), 6);
}

TEST(batcher, a_full_lane_refuses_and_does_nothing) {
  Fixture fixture({.name = "doubler", .lanes = 1, .max_batch = 1, .queue_limit = 2});
  fixture.held = true;
  auto running = fixture.submit(0, 1);
  ASSERT_TRUE(eventually([&] { return fixture.batch_count() == 1; }));
  std::vector<std::future<int>> waiting;
  for (int i = 2; i <= 3; ++i) waiting.push_back(fixture.submit(0, i));
  fixture.runtime.run_on(0, test::turns());
  try {
    fixture.submit(0, 4).get();
    FAIL() << "the queue was full";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, "busy");
    EXPECT_TRUE(e.error().retry_after);
  }
  fixture.held = false;
  EXPECT_EQ(running.get(), 2);
  EXPECT_EQ(waiting[0].get(), 4);
  EXPECT_EQ(waiting[1].get(), 6);
  EXPECT_THAT(fixture.batches, ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

TEST(batcher, stopping_handles_queued_items_and_refuses_new_ones) {
  auto fixture = std::make_unique<Fixture>();
  fixture->held = true;
  auto running = fixture->submit(0, 1);
  ASSERT_TRUE(eventually([&] { return fixture->batch_count() == 1; }));
  auto waiting = fixture->submit(0, 2);
  fixture->runtime.run_on(0, test::turns());
  auto stopped =
      asio::co_spawn(fixture->runtime.loop(1), fixture->batcher.stop(fixture->runtime, 10s), asio::use_future);
  fixture->held = false;
  stopped.get();
  EXPECT_EQ(running.get(), 2);
  EXPECT_EQ(waiting.get(), 4);
  EXPECT_THROW(fixture->submit(0, 3).get(), Exception);
}

// Waits for answered callers to submit again, without a practical limit.
const BatcherOptions kPatient{.name = "doubler", .lanes = 1, .wait_share = 1e6, .longest_wait = 1h};

// One batch in flight, with the first item, and `queued_items` more in the queue.
struct Busy : Fixture {
  explicit Busy(BatcherOptions options, int queued_items) : Fixture(std::move(options)) {
    held = true;
    first = submit(0, 1);
    EXPECT_TRUE(eventually([&] { return batch_count() == 1; }));
    for (int i = 2; i < 2 + queued_items; ++i) queued.push_back(submit(0, i));
    runtime.run_on(0, test::turns());
  }
  void release() {
    held = false;
    EXPECT_EQ(first.get(), 2);
  }
  std::future<int> first;
  std::vector<std::future<int>> queued;
};

TEST(batcher, waits_for_answered_callers_to_submit_again) {
  Busy fixture(kPatient, 3);
  fixture.release();
  // One caller was answered and three items are queued, so the lane waits for four.
  for (std::size_t loop : {0, 1, 0}) fixture.runtime.run_on(loop, test::turns());
  EXPECT_EQ(fixture.batch_count(), 1U) << "the three queued items did not wait for the fourth";
  EXPECT_EQ(fixture.submit(1, 5).get(), 10);
  for (auto& one : fixture.queued) one.get();
  EXPECT_THAT(fixture.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3, 4, 5)));
}

TEST(batcher, a_lane_waits_no_longer_than_longest_wait) {
  auto hasty = kPatient;
  hasty.longest_wait = 10ms;
  Busy fixture(hasty, 1);
  fixture.release();
  EXPECT_EQ(fixture.queued.front().get(), 4) << "the first caller did not submit again";
}

TEST(batcher, a_single_caller_never_waits) {
  Fixture fixture(kPatient);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(fixture.submit(0, i).get(), 2 * i);
}

TEST(batcher, a_full_batch_does_not_wait_for_more_items) {
  auto small = kPatient;
  small.max_batch = 2;
  Busy fixture(small, 4);
  fixture.release();
  for (int i = 2; i <= 5; ++i) EXPECT_EQ(fixture.queued[static_cast<std::size_t>(i) - 2].get(), 2 * i);
}

TEST(batcher, lanes_do_not_wait_for_each_other) {
  auto two = kPatient;
  two.lanes = 2;
  Busy fixture(two, 0);
  std::string other = "0";
  while (stable_hash(other) % 2 == stable_hash("key") % 2) other += "0";
  auto beside = fixture.submit(1, 2, other);
  EXPECT_TRUE(eventually([&] { return fixture.batch_count() == 2; }));
  fixture.release();
  EXPECT_EQ(beside.get(), 4);
}

TEST(batcher, stopping_ends_the_wait_for_more_items) {
  Busy fixture(kPatient, 1);
  fixture.release();
  fixture.runtime.run_on(1, fixture.batcher.stop(fixture.runtime, 10s));
  EXPECT_EQ(fixture.queued.front().get(), 4);
}

awaitable<int> soon(int value) {
  co_await test::turns(value);
  co_return value;
}

awaitable<int> fails() {
  co_await test::turns(3);
  throw Exception(invalid("broken", "broken"));
}

TEST(gather, gives_results_in_the_order_of_the_tasks) {
  test::on_loop([]() -> awaitable<> {
    std::vector<awaitable<int>> tasks;
    for (const int value : {5, 1, 3}) tasks.push_back(soon(value));
    const auto results = co_await gather(std::move(tasks));
    EXPECT_THAT(results, ElementsAre(5, 1, 3));
  });
}

TEST(gather, waits_for_all_before_it_throws) {
  test::on_loop([]() -> awaitable<> {
    bool finished = false;
    std::vector<awaitable<int>> tasks;
    tasks.push_back(fails());
    tasks.push_back([](bool& done) -> awaitable<int> {
      co_await test::turns(20);
      done = true;
      co_return 1;
    }(finished));
    std::string code;
    try {
      co_await gather(std::move(tasks));
    } catch (const Exception& e) {
      code = e.error().code;
    }
    EXPECT_EQ(code, "broken");
    EXPECT_TRUE(finished);
  });
}

TEST(gather, without_tasks_returns_no_results) {
  test::on_loop([]() -> awaitable<> {
    const auto results = co_await gather(std::vector<awaitable<int>>());
    EXPECT_TRUE(results.empty());
  });
}

}  // namespace
}  // namespace fencepost
