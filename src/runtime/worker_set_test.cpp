#include "runtime/worker_set.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/runtime_test_support.hpp"

namespace fencepost {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct Recorder {
  Recorder(std::string its_name, std::vector<std::string>& its_log, test::Gate* its_gate = nullptr)
      : name(std::move(its_name)), log(its_log), gate(its_gate) {}
  void start() { log.push_back("start " + name); }
  awaitable<> stop() {
    log.push_back("stop " + name);
    if (gate != nullptr) co_await gate->pass();
    log.push_back("stopped " + name);
  }

  std::string name;
  std::vector<std::string>& log;
  test::Gate* gate;
};

TEST(worker_set, starts_in_order_and_stops_all_at_once) {
  test::on_loop([]() -> awaitable<> {
    std::vector<std::string> log;
    test::Gate gate(co_await this_executor());
    WorkerSet workers;
    EXPECT_EQ(workers.add<Recorder>("slow", log, &gate).name, "slow");
    workers.add<Recorder>("quick", log);
    workers.start();
    EXPECT_THAT(log, ElementsAre("start slow", "start quick"));
    log.clear();
    auto open_after_quick = [](std::vector<std::string>& seen, test::Gate& door) -> awaitable<bool> {
      const bool quick =
          co_await test::comes_true([&] { return std::ranges::find(seen, "stopped quick") != seen.end(); });
      EXPECT_EQ(std::ranges::find(seen, "stopped slow"), seen.end());
      door.open();
      co_return quick;
    };
    auto stop = [](WorkerSet& set) -> awaitable<bool> {
      co_await set.stop();
      co_return true;
    };
    std::vector<awaitable<bool>> both;
    both.push_back(stop(workers));
    both.push_back(open_after_quick(log, gate));
    const auto done = co_await gather(std::move(both));
    EXPECT_TRUE(done[1]) << "the quick worker waited for the slow one";
    EXPECT_THAT(log, UnorderedElementsAre("stop slow", "stop quick", "stopped quick", "stopped slow"));
  });
}

}  // namespace
}  // namespace fencepost
