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

// A batcher of one lane on loop 0 whose handler doubles numbers, notes its batches, and waits while it is held.
struct House {
  explicit House(BatcherOptions options = {.name = "doubler", .lanes = 1})
      : batcher(
            runtime, std::move(options), [this](std::vector<int> items) { return handle(std::move(items)); }, metrics) {
    runtime.start();
    batcher.start();
  }
  ~House() {
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
  House house;
  EXPECT_EQ(house.submit(0, 1).get(), 2);
  EXPECT_EQ(house.submit(1, 2).get(), 4);
}

TEST(batcher, what_arrives_meanwhile_forms_the_next_batch) {
  House house;
  house.held = true;
  auto first = house.submit(1, 1);
  ASSERT_TRUE(eventually([&] { return house.batch_count() == 1; }));
  std::vector<std::future<int>> rest;
  for (int i = 2; i <= 5; ++i) rest.push_back(house.submit(0, i));
  // They are in line, in order, once a question that was posted after them is answered.
  house.runtime.run_on(0, test::turns());
  house.held = false;
  EXPECT_EQ(first.get(), 2);
  for (int i = 2; i <= 5; ++i) EXPECT_EQ(rest[static_cast<std::size_t>(i) - 2].get(), 2 * i);
  EXPECT_THAT(house.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3, 4, 5)));
}

TEST(batcher, a_handler_that_throws_fails_its_batch_and_nothing_else) {
  House house;
  EXPECT_THROW(house.submit(1, -1).get(), Exception);
  EXPECT_EQ(house.submit(1, 3).get(), 6);
}

TEST(batcher, a_full_lane_refuses_and_does_nothing) {
  House house({.name = "doubler", .lanes = 1, .max_batch = 1, .queue_limit = 2});
  house.held = true;
  auto running = house.submit(0, 1);
  ASSERT_TRUE(eventually([&] { return house.batch_count() == 1; }));
  std::vector<std::future<int>> waiting;
  for (int i = 2; i <= 3; ++i) waiting.push_back(house.submit(0, i));
  house.runtime.run_on(0, test::turns());
  try {
    house.submit(0, 4).get();
    FAIL() << "there was no room";
  } catch (const Exception& e) {
    EXPECT_EQ(e.error().code, "busy");
    EXPECT_TRUE(e.error().retry_after);
  }
  house.held = false;
  EXPECT_EQ(running.get(), 2);
  EXPECT_EQ(waiting[0].get(), 4);
  EXPECT_EQ(waiting[1].get(), 6);
  EXPECT_THAT(house.batches, ElementsAre(ElementsAre(1), ElementsAre(2), ElementsAre(3)));
}

TEST(batcher, stopping_finishes_what_is_in_line_and_refuses_the_rest) {
  auto house = std::make_unique<House>();
  house->held = true;
  auto running = house->submit(0, 1);
  ASSERT_TRUE(eventually([&] { return house->batch_count() == 1; }));
  auto waiting = house->submit(0, 2);
  house->runtime.run_on(0, test::turns());
  auto stopped = asio::co_spawn(house->runtime.loop(1), house->batcher.stop(house->runtime, 10s), asio::use_future);
  house->held = false;
  stopped.get();
  EXPECT_EQ(running.get(), 2);
  EXPECT_EQ(waiting.get(), 4);
  EXPECT_THROW(house->submit(0, 3).get(), Exception);
}

// Waits for those who come back as long as it takes.
const BatcherOptions kPatient{.name = "doubler", .lanes = 1, .wait_share = 1e6, .longest_wait = 1h};

// One batch under way, with the first item, and another item in line.
struct Busy : House {
  explicit Busy(BatcherOptions options, int in_line) : House(std::move(options)) {
    held = true;
    first = submit(0, 1);
    EXPECT_TRUE(eventually([&] { return batch_count() == 1; }));
    for (int i = 2; i < 2 + in_line; ++i) line.push_back(submit(0, i));
    runtime.run_on(0, test::turns());
  }
  void let_go() {
    held = false;
    EXPECT_EQ(first.get(), 2);
  }
  std::future<int> first;
  std::vector<std::future<int>> line;
};

TEST(batcher, those_who_were_answered_together_are_handled_together_when_they_come_back) {
  Busy house(kPatient, 3);
  house.let_go();
  // One was answered and three are in line: four are expected.
  for (std::size_t loop : {0, 1, 0}) house.runtime.run_on(loop, test::turns());
  EXPECT_EQ(house.batch_count(), 1U) << "the three did not wait for the one";
  EXPECT_EQ(house.submit(1, 5).get(), 10);
  for (auto& one : house.line) one.get();
  EXPECT_THAT(house.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3, 4, 5)));
}

TEST(batcher, a_lane_waits_no_longer_than_it_may) {
  auto hasty = kPatient;
  hasty.longest_wait = 10ms;
  Busy house(hasty, 1);
  house.let_go();
  EXPECT_EQ(house.line.front().get(), 4) << "though the first caller did not come back";
}

TEST(batcher, a_caller_who_comes_back_alone_never_waits) {
  House house(kPatient);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(house.submit(0, i).get(), 2 * i);
}

TEST(batcher, a_full_batch_waits_for_nobody) {
  auto small = kPatient;
  small.max_batch = 2;
  Busy house(small, 4);
  house.let_go();
  for (int i = 2; i <= 5; ++i) EXPECT_EQ(house.line[static_cast<std::size_t>(i) - 2].get(), 2 * i);
}

TEST(batcher, lanes_do_not_wait_for_each_other) {
  auto two = kPatient;
  two.lanes = 2;
  Busy house(two, 0);
  std::string other = "0";
  while (stable_hash(other) % 2 == stable_hash("key") % 2) other += "0";
  auto beside = house.submit(1, 2, other);
  EXPECT_TRUE(eventually([&] { return house.batch_count() == 2; }));
  house.let_go();
  EXPECT_EQ(beside.get(), 4);
}

TEST(batcher, stopping_takes_a_lane_along_that_waits_for_more) {
  Busy house(kPatient, 1);
  house.let_go();
  house.runtime.run_on(1, house.batcher.stop(house.runtime, 10s));
  EXPECT_EQ(house.line.front().get(), 4);
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

TEST(gather, of_nothing_is_nothing) {
  test::on_loop([]() -> awaitable<> {
    const auto results = co_await gather(std::vector<awaitable<int>>());
    EXPECT_TRUE(results.empty());
  });
}

}  // namespace
}  // namespace fencepost
