#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"
#include "timelock/store/contract_query_store.hpp"

namespace fencepost::timelock {
namespace {

const ContractKey kKey{1, "0x00000000000000000000000000000000000c0de0"};

class ContractStatistics : public ::testing::Test {
 protected:
  static awaitable<> add(pg::Pool& pool) {
    NewTimelock contract{.key = kKey,
                         .standard = Standard::kOpenZeppelin,
                         .remark = "",
                         .rules = {.delay = 100, .grace = {}, .admin = {}, .pending = {}},
                         .from_block = 0,
                         .created_by = "test"};
    const ScanPoint head{.number = 7, .hash = "0x" + std::string(64, 'a'), .timestamp = 100'000'000};
    co_await insert_timelock(pool, std::move(contract), head);
  }
  // Flows that were queued one second after the other, each executed `delay` seconds later.
  void fill(const std::string& status, std::int64_t first, std::int64_t count, std::int64_t delay = 0) {
    const bool executed = status == "executed";
    db_.exec(fmt::format(
        "INSERT INTO timelock_transaction_flows (timelock_standard, chain_id, contract_address, flow_id, generation, "
        "status, confirmed, initiator_address, eta, queue_tx_hash, queue_block, queued_at, execute_tx_hash, "
        "executed_at, calls, told) SELECT 'openzeppelin', 1, '{}', '{}' || i, 1, '{}', true, 'x', 1, 'x', 1, "
        "to_timestamp(i), {}, {}, 1, '{{waiting}}' FROM generate_series({}, {}) AS i",
        kKey.address, status, status, executed ? "'x'" : "NULL",
        executed ? fmt::format("to_timestamp(i + {})", delay) : "NULL", first, first + count - 1));
  }

  test::TestDatabase db_{test::Template::kMigrated};
};

TEST_F(ContractStatistics, few_flows_are_counted_exactly) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await add(pool);
    fill("waiting", 1, 3);
    fill("waiting", 99'000'000, 2);  // in the last 30 days
    fill("executed", 1, 5, 70);
    fill("executed", 10, 4, 90);
    db_.exec("UPDATE timelock_transaction_flows SET removed = true WHERE flow_id = 'waiting1'");
    const auto stats = co_await contract_stats(pool, kKey);
    EXPECT_EQ(stats.flows, (std::map<FlowStatus, std::int64_t>{{FlowStatus::kWaiting, 4}, {FlowStatus::kExecuted, 9}}));
    EXPECT_FALSE(stats.at_least);
    EXPECT_EQ(stats.queued_lately, 2);
    EXPECT_EQ(stats.median_delay, 70);
  });
}

TEST_F(ContractStatistics, of_many_flows_the_newest_are_counted) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await add(pool);
    fill("waiting", 1, 3);
    fill("executed", 1, 2 * kMostCounted, 10);
    fill("executed", 1'000'000, kMostCounted, 500);
    const auto stats = co_await contract_stats(pool, kKey);
    EXPECT_EQ(stats.flows,
              (std::map<FlowStatus, std::int64_t>{{FlowStatus::kWaiting, 3}, {FlowStatus::kExecuted, kMostCounted}}));
    EXPECT_TRUE(stats.at_least);
    EXPECT_EQ(stats.median_delay, 500) << "of the newest, not of all";
  });
}

}  // namespace
}  // namespace fencepost::timelock
