#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"
#include "timelock/store/history_store.hpp"
#include "timelock/store/removal_store.hpp"

namespace fencepost::timelock {
namespace {

constexpr int kMany = 25'000;
const ContractKey kKey{1, "0x00000000000000000000000000000000000c0de0"};
const ContractKey kOther{1, "0x00000000000000000000000000000000000c0de1"};

class TimelockRemoval : public ::testing::Test {
 protected:
  static awaitable<bool> add(pg::Pool& pool, ContractKey key, std::int64_t head = 100) {
    NewTimelock contract{.key = std::move(key),
                         .standard = Standard::kCompound,
                         .remark = "r",
                         .rules = {.delay = 100, .grace = Uint256(50), .admin = kOther.address, .pending = {}},
                         .from_block = 0,
                         .created_by = "test"};
    const auto added = co_await insert_timelock(
        pool, std::move(contract), {.number = head, .hash = "0x" + std::string(64, 'a'), .timestamp = head * 10});
    co_return added.has_value();
  }
  // So many flows, each with an event.
  void fill(const ContractKey& key, int count) {
    db_.exec(fmt::format(
        "INSERT INTO timelock_transaction_flows (timelock_standard, chain_id, contract_address, flow_id, generation, "
        "status, confirmed, initiator_address, eta, queue_tx_hash, queue_block, queued_at, calls, told) SELECT "
        "'compound', 1, '{0}', i::text, 1, 'waiting', true, 'x', 1, 'x', 1, now(), 1, '{{waiting}}' FROM "
        "generate_series(1, {1}) AS i",
        key.address, count));
    db_.exec(fmt::format(
        "INSERT INTO compound_timelock_transactions (chain_id, contract_address, event_type, event_tx_hash, "
        "event_target, event_value, event_signature, event_data, event_eta, tx_hash, from_address, block_number, "
        "block_hash, block_timestamp, log_index) SELECT 1, '{0}', 'QueueTransaction', i::text, 'x', 0, '', '0x', 1, "
        "'x', 'x', i, '{0}' || i, now(), 0 FROM generate_series(1, {1}) AS i",
        key.address, count));
  }
  // Writes down how many rows each statement deletes.
  void watch_deletes() {
    db_.exec("CREATE TABLE deleted (rows bigint)");
    db_.exec(
        "CREATE FUNCTION note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO deleted SELECT "
        "count(*) FROM gone; RETURN NULL; END $$");
    for (const auto* table : {"timelock_transaction_flows", "compound_timelock_transactions"}) {
      db_.exec(
          fmt::format("CREATE TRIGGER note AFTER DELETE ON {} REFERENCING OLD TABLE AS gone FOR EACH STATEMENT "
                      "EXECUTE FUNCTION note_deleted()",
                      table));
    }
  }
  // "flows events" of a contract.
  std::string left(const ContractKey& key) {
    return db_.exec(fmt::format(
        "SELECT (SELECT count(*) FROM timelock_transaction_flows WHERE contract_address = '{0}') || ' ' || (SELECT "
        "count(*) FROM compound_timelock_transactions WHERE contract_address = '{0}')",
        key.address));
  }

  test::TestDatabase db_{test::Template::kMigrated};
};

TEST_F(TimelockRemoval, deletes_everything_of_the_contract_in_parts) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_TRUE(co_await add(pool, kKey));
    EXPECT_TRUE(co_await add(pool, kOther));
    fill(kKey, kMany);
    fill(kOther, 5);
    watch_deletes();
    EXPECT_TRUE(co_await begin_removal(pool, kKey));
    co_await finish_removal(pool, kKey);
    EXPECT_EQ(left(kKey), "0 0");
    EXPECT_EQ(left(kOther), "5 5");
    EXPECT_EQ(db_.exec("SELECT string_agg(contract_address, ',') FROM timelock"), kOther.address);
    EXPECT_EQ(db_.exec("SELECT sum(rows) || ' ' || max(rows) FROM deleted"),
              fmt::format("{} {}", 2 * kMany, kRowsRemovedAtOnce));
  });
}

TEST_F(TimelockRemoval, a_marked_contract_is_gone_for_users_and_scanners) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_TRUE(co_await add(pool, kKey));
    EXPECT_TRUE(co_await begin_removal(pool, kKey));
    EXPECT_FALSE(co_await begin_removal(pool, kKey)) << "once";
    EXPECT_FALSE(co_await find_timelock(pool, kKey));
    EXPECT_TRUE((co_await list_timelocks(pool, 1, std::nullopt, std::nullopt, 10)).empty());
    EXPECT_TRUE((co_await watched_contracts(pool, 1)).empty());
    EXPECT_FALSE(co_await set_remark(pool, kKey, "x"));
    EXPECT_FALSE(co_await restart_history(pool, kKey, 0)) << "that would end the halt";
    const HistoryRange range{.addresses = {kKey.address}, .first = 0, .last = 100};
    const auto advance = [&](pg::Transaction& tx) { return advance_history(tx, 1, range, 50); };
    EXPECT_FALSE(co_await pg::transaction(pool, advance)) << "a scan of its history was in flight";
    EXPECT_EQ(co_await unfinished_removals(pool, 1), (std::vector{kKey}));
    EXPECT_EQ(db_.exec("SELECT count(*) FROM timelock"), "1");
  });
}

TEST_F(TimelockRemoval, an_import_finishes_an_interrupted_removal_and_begins_anew) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_TRUE(co_await add(pool, kKey));
    fill(kKey, 5);
    EXPECT_TRUE(co_await begin_removal(pool, kKey));
    EXPECT_TRUE(co_await add(pool, kKey, 200));
    EXPECT_EQ(left(kKey), "0 0");
    const auto again = co_await find_timelock(pool, kKey);
    EXPECT_EQ(again->history_next, 0);
    EXPECT_EQ(again->history_last, 200) << "a chain without contracts is not scanned, so it begins at its head";
    EXPECT_FALSE(again->halted_block);
    fill(kKey, 3);
    co_await finish_removal(pool, kKey);  // of another node, which is late
    EXPECT_EQ(left(kKey), "3 3");
    EXPECT_TRUE((co_await unfinished_removals(pool, 1)).empty());
  });
}

}  // namespace
}  // namespace fencepost::timelock
