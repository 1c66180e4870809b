// The guards of the timelock stores: two nodes that do the same at once do it once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"
#include "timelock/store/due_store.hpp"
#include "timelock/store/flow_store.hpp"
#include "timelock/store/history_store.hpp"
#include "timelock/store/raw_event_store.hpp"
#include "timelock/store/removal_store.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/store/timelock_store.hpp"

namespace fencepost::timelock {
namespace {

using namespace std::chrono_literals;

const std::string kContract = "0x00000000000000000000000000000000000c0de0";
const std::string kHash = "0x" + std::string(64, 'a');

class TimelockStores : public ::testing::Test {
 protected:
  NewTimelock contract(Standard standard = Standard::kCompound, std::string address = kContract) const {
    return {.key = {1, std::move(address)},
            .standard = standard,
            .remark = "r",
            .rules = {.delay = 100, .grace = Uint256(50), .admin = kContract, .pending = {}},
            .from_block = 0,
            .created_by = "test"};
  }
  void add_flow(int number, std::int64_t due, const std::string& status = "waiting", bool confirmed = true) {
    db_.exec(fmt::format(
        "INSERT INTO timelock_transaction_flows (timelock_standard, chain_id, contract_address, flow_id, generation, "
        "status, confirmed, initiator_address, eta, due_at, expired_at, queue_tx_hash, queue_block, queued_at, calls, "
        "told) VALUES ('compound', 1, '{}', '0x{:064x}', 1, '{}', {}, '{}', {}, to_timestamp({}), to_timestamp({}), "
        "'{}', 1, to_timestamp(1), 1, '{{waiting}}')",
        kContract, number, status, confirmed, kContract, due, due, due + 50, kHash));
  }
  std::string value(const std::string& sql) { return db_.exec(sql); }
  void complete_history() { db_.exec("UPDATE timelock SET history_done_at = clock_timestamp()"); }

  test::TestDatabase db_{test::Template::kMigrated};
};

TEST_F(TimelockStores, one_node_scans_a_chain_at_a_time) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    EXPECT_FALSE(co_await claim_scan(pool, 1, "a", 10s)) << "nothing is watched there";
    EXPECT_TRUE(co_await insert_timelock(pool, contract(), {.number = 7, .hash = kHash, .timestamp = 70}));
    const auto state = co_await claim_scan(pool, 1, "a", 10s);
    EXPECT_EQ(state->point, (ScanPoint{7, kHash, 70}));
    EXPECT_FALSE(co_await claim_scan(pool, 1, "b", 10s));
    EXPECT_TRUE(co_await claim_scan(pool, 1, "a", 10s)) << "it renews its own";
    co_await release_scan(pool, 1, "a");
    EXPECT_TRUE(co_await claim_scan(pool, 1, "b", 10s));
  });
}

// A scanner that asked the chain for the old set of contracts must not move past the new one's blocks.
TEST_F(TimelockStores, each_change_of_the_set_of_contracts_voids_what_a_scanner_has_read) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    const ScanPoint head{.number = 7, .hash = kHash, .timestamp = 70};
    co_await insert_timelock(pool, contract(), head);
    auto before = (co_await claim_scan(pool, 1, "a", 10s)).value();
    const auto voided = [&]() -> awaitable<bool> {
      const auto now = (co_await claim_scan(pool, 1, "a", 10s)).value();
      co_return now.contracts > std::exchange(before, now).contracts;
    };
    const std::string other = "0x00000000000000000000000000000000000c0de1";
    const auto added = co_await insert_timelock(pool, contract(Standard::kOpenZeppelin, other),
                                                {.number = 99, .hash = kHash, .timestamp = 0});
    EXPECT_EQ(added->history_last, 7) << "its history ends where the chain was scanned to, not at its own head";
    EXPECT_TRUE(co_await voided());
    EXPECT_FALSE(co_await insert_timelock(pool, contract(), head)) << "it is watched already";
    co_await voided();
    EXPECT_TRUE(co_await restart_history(pool, {1, other}, 3));
    EXPECT_TRUE(co_await voided());
    co_await halt_contract(pool, 1, other, 5, "bad");
    EXPECT_TRUE(co_await voided());
    EXPECT_EQ((co_await watched_contracts(pool, 1)).size(), 1U);
    EXPECT_TRUE(co_await restart_history(pool, {1, other}, 3)) << "a new start ends the halt";
    EXPECT_EQ((co_await watched_contracts(pool, 1)).size(), 2U);
    EXPECT_TRUE(co_await begin_removal(pool, {1, other}));
    EXPECT_TRUE(co_await voided());
  });
}

TEST_F(TimelockStores, a_range_of_history_is_noted_for_all_of_its_contracts_or_for_none) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    const std::string other = "0x00000000000000000000000000000000000c0de1";
    co_await insert_timelock(pool, contract(), {.number = 100, .hash = kHash, .timestamp = 70});
    co_await insert_timelock(pool, contract(Standard::kOpenZeppelin, other),
                             {.number = 100, .hash = kHash, .timestamp = 70});
    const HistoryRange range{.addresses = {kContract, other}, .first = 0, .last = 100};
    const auto advance = [&](std::int64_t through) {
      return pg::transaction(pool,
                             [&, through](pg::Transaction& tx) { return advance_history(tx, 1, range, through); });
    };
    EXPECT_TRUE(co_await advance(10));
    EXPECT_FALSE(co_await advance(10)) << "it begins elsewhere now";
    db_.exec("UPDATE timelock SET history_next = 0 WHERE contract_address = '" + other + "'");
    EXPECT_FALSE(co_await advance(20));
    EXPECT_EQ(value("SELECT string_agg(history_next::text, ',' ORDER BY contract_address) FROM timelock"), "11,0");
  });
}

TEST_F(TimelockStores, flows_move_by_the_clock_once_however_many_nodes_look) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await insert_timelock(pool, contract(), {.number = 7, .hash = kHash, .timestamp = 1000});
    complete_history();
    for (int i = 1; i <= 4; ++i) add_flow(i, 1000);
    add_flow(5, 1001);                   // one second too early
    add_flow(6, 900, "waiting", false);  // not announced yet
    std::size_t seen_by_other = 99;
    co_await pg::transaction(pool, [&](pg::Transaction& tx) -> awaitable<> {
      auto due = co_await get_waiting_flows_due(tx, 1, 1000, 3);
      EXPECT_EQ(due.size(), 3U);
      co_await pg::transaction(pool, [&](pg::Transaction& other) -> awaitable<> {
        auto rest = co_await get_waiting_flows_due(other, 1, 1000, 3);
        seen_by_other = rest.size();
        EXPECT_EQ(co_await update_flow_status(other, std::move(rest), FlowStatus::kReady, "b"), 1U);
      });
      EXPECT_EQ(co_await update_flow_status(tx, due, FlowStatus::kReady, "a"), 3U);
      EXPECT_EQ(co_await update_flow_status(tx, due, FlowStatus::kReady, "a"), 0U) << "they are not waiting any more";
    });
    EXPECT_EQ(seen_by_other, 1U);
    EXPECT_EQ(value("SELECT count(*) FROM event WHERE type = 'FlowStatusChanged' AND data->>'statusTo' = 'ready'"),
              "4");
    EXPECT_EQ(value("SELECT string_agg(status, ',' ORDER BY flow_id) FROM timelock_transaction_flows"),
              "ready,ready,ready,ready,waiting,waiting");
  });
}

TEST_F(TimelockStores, expiry_begins_after_the_last_second_of_grace_and_halted_contracts_do_not_move) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await insert_timelock(pool, contract(), {.number = 7, .hash = kHash, .timestamp = 1000});
    complete_history();
    add_flow(1, 1000, "ready");
    const auto expired = [&](std::int64_t now) {
      return pg::transaction(pool, [&, now](pg::Transaction& tx) -> awaitable<std::size_t> {
        co_return (co_await get_compound_flows_expired(tx, 1, now, 10)).size();
      });
    };
    EXPECT_EQ(co_await expired(1050), 0U);
    EXPECT_EQ(co_await expired(1051), 1U);
    add_flow(2, 1000);
    const auto due = [&](std::int64_t now) {
      return pg::transaction(pool, [&, now](pg::Transaction& tx) -> awaitable<std::size_t> {
        co_return (co_await get_waiting_flows_due(tx, 1, now, 10)).size();
      });
    };
    EXPECT_EQ(co_await due(1050), 1U);
    EXPECT_EQ(co_await due(1051), 0U) << "it is not announced as ready after its time";
    value("DELETE FROM timelock_transaction_flows WHERE status = 'waiting'");
    EXPECT_TRUE(co_await restart_history(pool, {1, kContract}, 0));
    EXPECT_EQ(co_await expired(1051), 0U) << "its history is not complete";
    complete_history();
    co_await halt_contract(pool, 1, kContract, 5, "bad");
    EXPECT_EQ(co_await expired(1051), 0U);
  });
}

TEST_F(TimelockStores, a_history_begins_earlier_only_while_nothing_was_announced) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    auto later = contract();
    later.from_block = 5;
    co_await insert_timelock(pool, later, {.number = 7, .hash = kHash, .timestamp = 1000});
    EXPECT_TRUE(co_await restart_history(pool, {1, kContract}, 4));
    add_flow(1, 1000);
    EXPECT_FALSE(co_await restart_history(pool, {1, kContract}, 3));
    EXPECT_TRUE(co_await restart_history(pool, {1, kContract}, 4));
  });
}

TEST_F(TimelockStores, a_contract_that_never_ends_emitting_for_one_id_is_refused) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    const auto add = [this](std::size_t first, std::size_t last) {
      db_.exec(fmt::format(
          "INSERT INTO openzeppelin_timelock_transactions (chain_id, contract_address, event_type, event_id, "
          "event_index, "
          "event_target, event_value, event_data, tx_hash, from_address, block_number, block_hash, block_timestamp, "
          "log_index) SELECT 1, '{0}', 'CallScheduled', '{1}', n, '{0}', 0, '0x1234', '{1}', '{0}', 1, '{1}', now(), n "
          "FROM generate_series({2}, {3}) AS n",
          kContract, kHash, first, last));
    };
    const auto load = [&] {
      return pg::transaction(pool, [](pg::Transaction& tx) -> awaitable<std::size_t> {
        const FlowKeys keys{{Standard::kOpenZeppelin, 1, kContract, kHash}};
        co_return (co_await load_events(tx, keys)).size();
      });
    };
    add(1, kMaxEventsOfFlow);
    EXPECT_EQ(co_await load(), kMaxEventsOfFlow);
    add(kMaxEventsOfFlow + 1, kMaxEventsOfFlow + 1);
    std::string code;
    try {
      co_await load();
    } catch (const Exception& e) {
      code = e.error().code;
    }
    EXPECT_EQ(code, "bad_log");
  });
}

TEST_F(TimelockStores, reminders_come_once) {
  test::with_pool(db_.dsn(), {}, [this](pg::Pool& pool) -> awaitable<> {
    co_await insert_timelock(pool, contract(), {.number = 7, .hash = kHash, .timestamp = 1000});
    complete_history();
    add_flow(1, 1000, "ready");
    const auto remind_at = [&](std::int64_t now) {
      return pg::transaction(pool, [&, now](pg::Transaction& tx) { return remind(tx, 1, now, 20, 5, 10); });
    };
    EXPECT_EQ(co_await remind_at(1004), 0U);
    EXPECT_EQ(co_await remind_at(1005), 1U) << "it has been ready for five seconds";
    EXPECT_EQ(co_await remind_at(1006), 0U);
    EXPECT_EQ(co_await remind_at(1030), 1U) << "it expires in twenty seconds";
    EXPECT_EQ(co_await remind_at(1031), 0U);
    EXPECT_EQ(value("SELECT string_agg(data->>'kind', ',' ORDER BY seq) FROM event WHERE type = 'FlowReminder'"),
              "ready_unexecuted,expires_in");
  });
}

}  // namespace
}  // namespace fencepost::timelock
