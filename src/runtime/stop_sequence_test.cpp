#include "runtime/stop_sequence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "runtime/runtime_test_support.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::Gate;
using test::on_loop;
using test::turns;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(stop_sequence, stops_what_was_started_last_first) {
  on_loop([]() -> awaitable<> {
    std::vector<std::string> stopped;
    StopSequence stops;
    for (const char* name : {"database", "workers", "http"}) {
      stops.add(name, [&stopped, name](milliseconds) -> awaitable<> {
        co_await turns();
        stopped.emplace_back(name);
      });
    }
    EXPECT_TRUE(co_await stops.run(10s));
    EXPECT_THAT(stopped, ElementsAre("http", "workers", "database"));
  });
}

TEST(stop_sequence, a_stage_begins_when_the_one_before_has_ended) {
  on_loop([]() -> awaitable<> {
    int inside = 0;
    int most = 0;
    StopSequence stops;
    for (int i = 0; i < 3; ++i) {
      stops.add("stage", [&](milliseconds) -> awaitable<> {
        most = std::max(most, ++inside);
        co_await turns();
        --inside;
      });
    }
    EXPECT_TRUE(co_await stops.run(10s));
    EXPECT_EQ(most, 1);
  });
}

TEST(stop_sequence, gives_each_stage_half_of_the_remaining_time) {
  on_loop([]() -> awaitable<> {
    std::vector<milliseconds> limits;
    StopSequence stops;
    stops.add("second", [&](milliseconds limit) -> awaitable<> {
      limits.push_back(limit);
      co_return;
    });
    stops.add("first", [&](milliseconds limit) -> awaitable<> {
      limits.push_back(limit);
      asio::steady_timer timer(co_await asio::this_coro::executor, 5ms);
      co_await timer.async_wait(asio::use_awaitable);
    });
    EXPECT_TRUE(co_await stops.run(10s));
    EXPECT_EQ(limits.size(), 2U);
    EXPECT_LE(limits.at(0), 5s);
    EXPECT_GT(limits.at(0), 4s);
    EXPECT_LE(limits.at(1), limits.at(0) - 2ms);
  });
}

TEST(stop_sequence, continues_after_stages_that_throw_and_logs_their_names) {
  test::LogText text;
  std::vector<std::string> stopped;
  on_loop([&]() -> awaitable<> {
    StopSequence stops;
    stops.add("last", [&](milliseconds) -> awaitable<> {
      stopped.emplace_back("last");
      co_return;
    });
    stops.add("coroutine", [](milliseconds) -> awaitable<> {
      throw Exception(unavailable("gone", "already gone"));
      co_return;
    });
    stops.add("function", [](milliseconds) -> awaitable<> { throw std::logic_error("not even started"); });
    EXPECT_TRUE(co_await stops.run(10s));
  });
  EXPECT_THAT(stopped, ElementsAre("last"));
  const auto log = text.take();
  EXPECT_THAT(log, HasSubstr("coroutine"));
  EXPECT_THAT(log, HasSubstr("already gone"));
  EXPECT_THAT(log, HasSubstr("function"));
  EXPECT_THAT(log, HasSubstr("not even started"));
}

TEST(stop_sequence, gives_up_on_a_stage_that_hangs_and_logs_its_name) {
  test::LogText text;
  std::vector<std::string> stopped;
  on_loop([&]() -> awaitable<> {
    Gate gate(co_await this_executor());
    auto stops = std::make_unique<StopSequence>();
    stops->add("under it", [&](milliseconds) -> awaitable<> {
      stopped.emplace_back("under it");
      co_return;
    });
    const auto mark = std::make_shared<std::string>("closure");
    stops->add("stuck", [&stopped, &gate, mark](milliseconds) -> awaitable<> {
      co_await gate.pass();
      stopped.push_back(*mark);
    });
    EXPECT_FALSE(co_await stops->run(5ms));
    EXPECT_THAT(stopped, IsEmpty());
    // When a stage that hung resumes later, its captures are still alive.
    stops.reset();
    gate.open();
    co_await turns();
    EXPECT_THAT(stopped, ElementsAre("closure"));
  });
  EXPECT_THAT(text.take(), HasSubstr("stuck"));
}

TEST(stop_sequence, without_stages_succeeds_at_once) {
  on_loop([]() -> awaitable<> {
    StopSequence stops;
    EXPECT_TRUE(co_await stops.run(0ms));
  });
}

}  // namespace
}  // namespace fencepost
