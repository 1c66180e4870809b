#include "runtime/lanes.hpp"

#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::eventually;
using test::hang;
using test::turns;
using testing::ElementsAre;
using testing::HasSubstr;

// Lanes on two loops. Keys "a" to "d" have lanes of their own when there are 16: a and c on loop 0, b and d on loop 1.
struct House {
  explicit House(Lanes::Options options = {.name = "signers"}) : lanes(runtime, std::move(options), metrics) {
    runtime.start();
    lanes.start();
  }
  ~House() {
    stop(10s);
    runtime.stop();
  }

  void stop(std::chrono::milliseconds grace) { runtime.run_on(0, lanes.stop(grace)); }
  double count(const char* metric) { return metrics.counter(metric, "", {{"lanes", "signers"}}).Value(); }

  Runtime runtime{{.threads = 2}};
  Metrics metrics;
  Lanes lanes;
};

// Holds a lane until it is opened, from any thread.
struct Block {
  std::atomic<bool> begun{false};
  std::atomic<bool> open{false};

  Lanes::Task task() {
    return [this]() -> awaitable<> {
      begun = true;
      co_await comes_true([this] { return open.load(); });
    };
  }
};

Lanes::Task note(std::vector<int>& list, int value) {
  return [&list, value]() -> awaitable<> {
    co_await turns(2);
    list.push_back(value);
  };
}

TEST(lanes, tasks_of_one_key_run_one_by_one_in_the_order_each_thread_posted_them) {
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  std::vector<std::pair<int, int>> ran;  // guarded by the lane itself: TSan would tell
  int inside = 0;
  int most = 0;
  {
    House house;
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(house.lanes.post("one key", [&, t, i]() -> awaitable<> {
            most = std::max(most, ++inside);
            co_await turns(1);
            ran.emplace_back(t, i);
            --inside;
          }));
        }
      });
    }
    threads.clear();
    house.stop(20s);
  }
  EXPECT_EQ(most, 1);
  EXPECT_EQ(ran.size(), std::size_t{kThreads * kEach});
  std::map<int, int> next;
  for (const auto& [thread, i] : ran) EXPECT_EQ(i, next[thread]++);
}

TEST(lanes, tasks_of_different_keys_run_side_by_side) {
  // Each pair can only end if both run at once: the first of it waits for the second.
  for (const auto& [first, second] : {std::pair{"a", "c"}, std::pair{"a", "b"}}) {
    House house;
    EXPECT_NE(house.lanes.lane_of(first), house.lanes.lane_of(second));
    std::atomic<bool> second_ran{false};
    std::atomic<bool> first_saw_it{false};
    EXPECT_TRUE(house.lanes.post(
        first, [&]() -> awaitable<> { first_saw_it = co_await comes_true([&] { return second_ran.load(); }); }));
    EXPECT_TRUE(house.lanes.post(second, [&]() -> awaitable<> {
      second_ran = true;
      co_return;
    }));
    EXPECT_TRUE(eventually([&] { return first_saw_it.load(); })) << first << ' ' << second;
  }
}

TEST(lanes, a_task_runs_on_the_loop_of_its_key) {
  House house;
  for (const char* key : {"a", "b", "c", "d"}) {
    std::atomic<int> loop{-1};
    EXPECT_TRUE(house.lanes.post(key, [&]() -> awaitable<> {
      loop = static_cast<int>(Runtime::current());
      co_return;
    }));
    EXPECT_TRUE(eventually([&] { return loop >= 0; }));
    EXPECT_TRUE(house.lanes.executor_of(key) == house.runtime.executor(static_cast<std::size_t>(loop.load())));
  }
}

TEST(lanes, a_full_lane_refuses_and_the_others_do_not) {
  std::vector<int> ran;
  std::vector<int> others;
  {
    House house({.name = "signers", .queue_limit = 2});
    Block block;
    EXPECT_TRUE(house.lanes.post("a", block.task()));
    EXPECT_TRUE(eventually([&] { return block.begun.load(); }));
    EXPECT_TRUE(house.lanes.post("a", note(ran, 1)));
    EXPECT_TRUE(house.lanes.post("a", note(ran, 2)));
    EXPECT_FALSE(house.lanes.post("a", note(ran, 3)));
    EXPECT_TRUE(house.lanes.post("b", note(others, 4)));
    EXPECT_EQ(house.count("lane_refused_total"), 1);
    block.open = true;
    // Room again once they have begun.
    EXPECT_TRUE(eventually([&] { return house.lanes.post("a", note(ran, 5)); }));
    house.stop(20s);
  }
  EXPECT_THAT(ran, ElementsAre(1, 2, 5));
  EXPECT_THAT(others, ElementsAre(4));
}

TEST(lanes, a_flood_from_many_threads_cannot_outrun_the_limit) {
  House house({.name = "signers", .queue_limit = 10});
  Block block;
  EXPECT_TRUE(house.lanes.post("a", block.task()));
  EXPECT_TRUE(eventually([&] { return block.begun.load(); }));
  std::atomic<int> accepted{0};
  std::atomic<int> ran{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          accepted += house.lanes.post("a", [&]() -> awaitable<> {
            ++ran;
            co_return;
          });
        }
      });
    }
  }
  EXPECT_EQ(accepted, 10);
  EXPECT_EQ(house.count("lane_refused_total"), 390);
  block.open = true;
  EXPECT_TRUE(eventually([&] { return ran == 10; }));
}

TEST(lanes, a_task_that_throws_anything_is_counted_and_the_lane_goes_on) {
  House house;
  std::atomic<bool> ran{false};
  EXPECT_TRUE(house.lanes.post("a", []() -> awaitable<> {
    throw Exception(unavailable("rpc_down", "no endpoint answers"));
    co_return;
  }));
  EXPECT_TRUE(house.lanes.post("a", []() -> awaitable<> {
    throw std::runtime_error("plain");
    co_return;
  }));
  EXPECT_TRUE(house.lanes.post("a", []() -> awaitable<> { throw std::logic_error("before there is a coroutine"); }));
  EXPECT_TRUE(house.lanes.post("a", []() -> awaitable<> {
    throw boost::system::system_error(asio::error::operation_aborted);
    co_return;
  }));
  EXPECT_TRUE(house.lanes.post("a", [&]() -> awaitable<> {
    ran = true;
    co_return;
  }));
  EXPECT_TRUE(eventually([&] { return ran.load(); }));
  EXPECT_EQ(house.count("lane_failed_total"), 4);
}

TEST(lanes, stop_runs_what_was_accepted_also_a_moment_before) {
  House house;
  std::atomic<int> ran{0};
  // From a loop's own thread, and with nothing awaited in between: what was posted is still on its way.
  house.runtime.run_on(0, [](House& h, std::atomic<int>& r) -> awaitable<> {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(h.lanes.post(std::to_string(i), [&r]() -> awaitable<> {
        co_await turns(3);
        ++r;
      }));
    }
    co_await h.lanes.stop(20s);
  }(house, ran));
  EXPECT_EQ(ran, 100);
}

TEST(lanes, refuse_once_stopped) {
  House house;
  house.stop(1s);
  std::atomic<bool> ran{false};
  EXPECT_FALSE(house.lanes.post("a", [&]() -> awaitable<> {
    ran = true;
    co_return;
  }));
  EXPECT_FALSE(ran);
}

TEST(lanes, stop_cancels_a_task_that_hangs_and_drops_those_behind_it_with_a_word) {
  test::LogText text;
  std::atomic<bool> begun{false};
  std::atomic<bool> aborted{false};
  std::atomic<bool> behind_ran{false};
  std::atomic<bool> other_ran{false};
  {
    House house;
    EXPECT_TRUE(house.lanes.post("a", [&]() -> awaitable<> {
      begun = true;
      try {
        co_await hang();
      } catch (const boost::system::system_error&) {
        aborted = true;
        throw;
      }
    }));
    EXPECT_TRUE(eventually([&] { return begun.load(); }));
    EXPECT_TRUE(house.lanes.post("a", [&]() -> awaitable<> {
      behind_ran = true;
      co_return;
    }));
    EXPECT_TRUE(house.lanes.post("c", [&]() -> awaitable<> {
      other_ran = true;
      co_return;
    }));
    house.stop(5ms);
    EXPECT_TRUE(aborted);
    EXPECT_FALSE(behind_ran);
    EXPECT_TRUE(other_ran);
  }
  EXPECT_THAT(text.take(), HasSubstr("tasks dropped by stop"));
}

TEST(lanes, the_lane_of_a_key_is_the_same_everywhere) {
  // The published test vectors of FNV-1a: cbf29ce484222325, af63dc4c8601ec8c, 85944171f73967e8.
  House sixteen;
  EXPECT_EQ(sixteen.lanes.lane_of(""), 5U);
  EXPECT_EQ(sixteen.lanes.lane_of("a"), 12U);
  EXPECT_EQ(sixteen.lanes.lane_of("foobar"), 8U);
  House seven({.name = "signers", .count = 7});
  EXPECT_EQ(seven.lanes.lane_of("foobar"), 0x85944171f73967e8U % 7);
}

}  // namespace
}  // namespace fencepost
