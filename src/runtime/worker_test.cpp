#include "runtime/worker.hpp"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runtime/manual_steady_clock_test_support.hpp"
#include "runtime/runtime_test_support.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::Gate;
using test::hang;
using test::ManualSteadyClock;
using test::on_loop;
using test::turns;
using testing::HasSubstr;
using Next = Worker::Next;

Worker::Options every(std::chrono::milliseconds interval) {
  return {.name = "sweeper", .interval = interval, .backoff = {.initial = 1ms, .cap = 1ms}, .stop_grace = 1ms};
}

double runs(Metrics& metrics, const char* result) {
  return metrics.counter("worker_runs_total", "", {{"worker", "sweeper"}, {"result", result}}).Value();
}

TEST(worker, runs_at_once_when_started) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          ++steps;
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    EXPECT_EQ(steps, 1);
    EXPECT_EQ(runs(metrics, "ok"), 1);
    co_await worker.stop();
  });
}

TEST(worker, runs_again_every_interval_and_not_before) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    ManualSteadyClock clock;
    int steps = 0;
    auto options = every(10s);
    options.clock = &clock;
    Worker worker(
        co_await this_executor(), options,
        [&]() -> awaitable<Next> {
          if (++steps > 100) co_await hang();  // a worker that spins would block the test forever
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    for (int interval = 1; interval <= 5; ++interval) {
      co_await turns();
      EXPECT_EQ(steps, interval);
      EXPECT_EQ(clock.next(), 10s);
      clock.advance(10s - 1ns);
      co_await turns();
      EXPECT_EQ(steps, interval) << "the interval ends a nanosecond later";
      clock.advance(1ns);
    }
    co_await worker.stop();
  });
}

TEST(worker, waits_longer_after_each_failure_up_to_the_cap) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    ManualSteadyClock clock;
    int steps = 0;
    auto options = every(1ms);
    options.clock = &clock;
    options.backoff = {.initial = 1s, .cap = 8s};
    Worker worker(
        co_await this_executor(), options,
        [&]() -> awaitable<Next> {
          ++steps;
          throw Exception(unavailable("rpc_down", "no endpoint answers"));
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    std::chrono::nanoseconds longest{0};
    for (int wait = 0; wait < 20; ++wait) {
      co_await turns();
      const auto next = clock.next();
      EXPECT_TRUE(next) << "a worker waits after a failed step";
      if (!next) break;
      EXPECT_LE(*next, std::min(8s, 1s * (1 << std::min(steps - 1, 3)))) << "the jitter is below the ceiling";
      longest = std::max(longest, *next);
      clock.advance(*next);
    }
    EXPECT_GT(longest, 2s);
    EXPECT_GE(steps, 20);
    co_await worker.stop();
  });
}

TEST(worker, runs_again_at_once_while_there_is_more) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> { co_return ++steps < 5 ? Next::kAgain : Next::kRest; }, metrics);
    worker.start();
    co_await turns();
    EXPECT_EQ(steps, 5);
    co_await worker.stop();
  });
}

TEST(worker, lets_other_coroutines_run_while_there_is_more) {
  on_loop([]() -> awaitable<> {
    constexpr int kSteps = 1'000;
    Metrics metrics;
    int steps = 0;
    bool others_ran = false;
    int steps_before_others = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          if (!others_ran) ++steps_before_others;
          co_return ++steps < kSteps ? Next::kAgain : Next::kRest;
        },
        metrics);
    worker.start();
    asio::post(co_await this_executor(), [&] { others_ran = true; });
    EXPECT_TRUE(co_await comes_true([&] { return steps == kSteps; }));
    EXPECT_LE(steps_before_others, 2) << "coroutines that were ready when the worker began run after its first step";
    co_await worker.stop();
  });
}

TEST(worker, a_wake_starts_a_step_before_the_interval_is_over) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          ++steps;
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    worker.wake();
    co_await turns();
    EXPECT_EQ(steps, 2);
    co_await worker.stop();
  });
}

TEST(worker, many_wakes_are_merged_into_one) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          ++steps;
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    for (int i = 0; i < 100; ++i) worker.wake();
    co_await turns();
    EXPECT_EQ(steps, 2);
    co_await worker.stop();
  });
}

TEST(worker, no_wake_from_another_thread_is_lost) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    std::atomic<int> wanted{0};
    std::atomic<int> seen{0};
    std::atomic<bool> all_seen{false};
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          seen = wanted.load();
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    std::jthread waker([&] {
      for (int i = 1; i <= 300; ++i) {
        wanted = i;
        worker.wake();
        // Waits after every tenth wake, so that wakes come both between steps and during a step.
        if (i % 10 == 0 && !test::eventually([&] { return seen >= i; }, 5s)) return;
      }
      all_seen = true;
    });
    EXPECT_TRUE(co_await comes_true([&] { return all_seen.load(); }));
    waker.join();
    co_await worker.stop();
  });
}

TEST(worker, a_wake_during_a_step_starts_another_after_it) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    Gate gate(co_await this_executor());
    int begun = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          ++begun;
          co_await gate.pass();
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    worker.wake();
    co_await turns();
    EXPECT_EQ(begun, 1);
    gate.open();
    co_await turns();
    EXPECT_EQ(begun, 2);
    co_await worker.stop();
  });
}

TEST(worker, never_overlaps_itself) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int inside = 0;
    int most = 0;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1ms),
        [&]() -> awaitable<Next> {
          most = std::max(most, ++inside);
          co_await turns(5);
          --inside;
          co_return ++steps % 2 == 0 ? Next::kAgain : Next::kRest;
        },
        metrics);
    worker.start();
    EXPECT_TRUE(co_await comes_true([&] {
      worker.wake();
      return steps >= 20;
    }));
    EXPECT_EQ(most, 1);
    co_await worker.stop();
  });
}

TEST(worker, continues_after_failures_of_any_type_and_counts_them) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    // Not a coroutine, so the first call throws before it returns an awaitable.
    const auto step = [&]() -> awaitable<Next> {
      ++steps;
      if (steps == 1) throw std::logic_error("no coroutine");
      return [](int n) -> awaitable<Next> {
        if (n == 2) throw Exception(unavailable("rpc_down", "no endpoint answers"));
        if (n == 3) throw boost::system::system_error(asio::error::operation_aborted);
        co_return Next::kRest;
      }(steps);
    };
    Worker worker(co_await this_executor(), every(1ms), step, metrics);
    worker.start();
    EXPECT_TRUE(co_await comes_true([&] { return steps >= 5; }));
    EXPECT_EQ(runs(metrics, "failed"), 3);
    EXPECT_GE(runs(metrics, "ok"), 1);
    co_await worker.stop();
  });
}

TEST(worker, logs_a_failure_with_its_name_and_code) {
  test::LogText text;
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          if (++steps == 1) throw Exception(unavailable("rpc_down", "no endpoint answers"));
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    EXPECT_TRUE(co_await comes_true([&] { return steps == 2; }));
    co_await worker.stop();
  });
  const auto log = text.take();
  EXPECT_THAT(log, HasSubstr("worker failed"));
  EXPECT_THAT(log, HasSubstr("sweeper"));
  EXPECT_THAT(log, HasSubstr("rpc_down"));
}

TEST(worker, a_wake_does_not_shorten_a_backoff) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    auto options = every(1ms);
    options.backoff = {.initial = 24h, .cap = 24h};
    Worker worker(
        co_await this_executor(), options,
        [&]() -> awaitable<Next> {
          ++steps;
          throw Exception(unavailable("rpc_down", "no endpoint answers"));
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    worker.wake();
    co_await turns();
    EXPECT_EQ(steps, 1);
    co_await worker.stop();  // stop does not wait for the backoff
  });
}

TEST(worker, stops_at_once_while_resting) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    int steps = 0;
    auto options = every(24h);
    options.stop_grace = 24h;
    Worker worker(
        co_await this_executor(), options,
        [&]() -> awaitable<Next> {
          ++steps;
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    co_await worker.stop();
    worker.wake();
    co_await turns();
    EXPECT_EQ(steps, 1);
  });
}

TEST(worker, stops_while_there_is_always_more) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    auto options = every(24h);
    options.stop_grace = 24h;
    Worker worker(co_await this_executor(), options, []() -> awaitable<Next> { co_return Next::kAgain; }, metrics);
    worker.start();
    co_await turns();
    co_await worker.stop();
  });
}

TEST(worker, stop_lets_the_step_finish_within_its_grace) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    Gate gate(co_await this_executor());
    bool finished = false;
    auto options = every(1h);
    options.stop_grace = 24h;
    Worker worker(
        co_await this_executor(), options,
        [&]() -> awaitable<Next> {
          co_await gate.pass();
          co_await turns();
          finished = true;
          co_return Next::kAgain;
        },
        metrics);
    worker.start();
    co_await turns();
    asio::post(co_await this_executor(), [&] { gate.open(); });
    co_await worker.stop();
    EXPECT_TRUE(finished);
    EXPECT_EQ(runs(metrics, "ok"), 1);
  });
}

TEST(worker, stop_cancels_a_step_that_hangs) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    bool unwound = false;
    Worker worker(
        co_await this_executor(), every(1h),
        [&]() -> awaitable<Next> {
          struct Unwind {
            bool& flag;
            ~Unwind() { flag = true; }
          } unwind{unwound};
          co_await hang();
          co_return Next::kRest;
        },
        metrics);
    worker.start();
    co_await turns();
    EXPECT_FALSE(unwound);
    co_await worker.stop();
    EXPECT_TRUE(unwound);
  });
}

TEST(worker, stops_when_it_was_never_started_and_when_it_has_stopped) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    Worker worker(co_await this_executor(), every(1h), []() -> awaitable<Next> { co_return Next::kRest; }, metrics);
    co_await worker.stop();
    co_await worker.stop();
  });
}

TEST(worker, a_posted_wake_may_outlive_the_worker) {
  on_loop([]() -> awaitable<> {
    Metrics metrics;
    auto worker = std::make_unique<Worker>(
        co_await this_executor(), every(1h), []() -> awaitable<Next> { co_return Next::kRest; }, metrics);
    worker->start();
    co_await turns();
    co_await worker->stop();
    worker->wake();
    worker.reset();
    co_await turns();
  });
}

}  // namespace
}  // namespace fencepost
