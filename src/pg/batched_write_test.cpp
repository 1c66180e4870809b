#include "pg/batched_write.hpp"

#include <atomic>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "runtime/runtime_test_support.hpp"
#include "tests/support/eventually.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;
using test::eventually;

// Doubles numbers, one set at a time; a set waits while `held`. Refuses a set with a negative number as PostgreSQL
// refuses bad data, and fails a set with a zero as if the connection were lost.
struct Doubler {
  Doubler() {
    runtime.start();
    writes.start();
  }
  ~Doubler() {
    held = false;
    runtime.run_on(0, writes.stop(10s));
    runtime.stop();
  }

  awaitable<std::vector<int>> write(std::span<const int> items) {
    ++sets;
    asio::steady_timer timer(co_await asio::this_coro::executor);
    while (held) {
      timer.expires_after(1ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    std::vector<int> out;
    for (const auto item : items) {
      if (item < 0) throw QueryError("double", "23514", std::to_string(item), "");
      if (item == 0) throw ConnectionLost("gone");
      out.push_back(2 * item);
    }
    co_return out;
  }

  std::future<int> submit(int item) {
    return asio::co_spawn(runtime.loop(1), writes.submit("key", item), asio::use_future);
  }

  // Submits all items as one set, behind another set that is held.
  std::vector<std::future<int>> submit_together(const std::vector<int>& items) {
    held = true;
    std::vector<std::future<int>> out;
    out.push_back(submit(1));
    EXPECT_TRUE(eventually([&] { return sets == 1; }));
    for (const auto item : items) out.push_back(submit(item));
    runtime.run_on(1, []() -> awaitable<> { co_return; }());  // the earlier submits on this loop have been posted
    runtime.run_on(0, []() -> awaitable<> { co_return; }());  // and have reached the lane
    held = false;
    EXPECT_EQ(out.front().get(), 2);
    out.erase(out.begin());
    return out;
  }

  Runtime runtime{{.threads = 2}};
  Metrics metrics;
  std::atomic<bool> held{false};
  std::atomic<int> sets{0};
  BatchedWrite<int, int> writes{
      runtime, {.name = "doubler", .lanes = 1}, [this](std::span<const int> items) { return write(items); }, metrics};
};

TEST(pg_batched_write, items_submitted_together_are_one_write_and_each_gets_its_answer) {
  Doubler doubler;
  auto answers = doubler.submit_together({1, 2, 3});
  EXPECT_EQ(answers[0].get(), 2);
  EXPECT_EQ(answers[1].get(), 4);
  EXPECT_EQ(answers[2].get(), 6);
  EXPECT_EQ(doubler.sets, 2);
}

TEST(pg_batched_write, a_refused_item_throws_its_own_error_and_the_others_are_written) {
  Doubler doubler;
  auto answers = doubler.submit_together({1, -7, 3, -9});
  EXPECT_EQ(answers[0].get(), 2);
  EXPECT_EQ(answers[2].get(), 6);
  for (const auto& [i, message] : {std::pair(1U, "-7"), std::pair(3U, "-9")}) {
    try {
      answers[i].get();
      ADD_FAILURE() << "written";
    } catch (const QueryError& error) {
      EXPECT_EQ(error.error().message, message);
    }
  }
}

TEST(pg_batched_write, an_error_of_the_whole_set_is_thrown_to_every_caller) {
  Doubler doubler;
  auto answers = doubler.submit_together({1, 0, 3});
  for (auto& answer : answers) EXPECT_THROW(answer.get(), ConnectionLost);
  EXPECT_EQ(doubler.sets, 2) << "the set was halved although no item caused the error";
}

}  // namespace
}  // namespace fencepost::pg
