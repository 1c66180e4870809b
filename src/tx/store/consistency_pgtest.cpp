#include "pg/error.hpp"
#include "tx/store/consistency.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;

// Three open transactions, one ended, two that wait.
class Consistency : public ProtocolTest {
 protected:
  Consistency() : lease(signer_of("node-a")) {
    std::vector<NewTx> items;
    items.reserve(6);
    for (int i = 0; i < 6; ++i) items.push_back(new_tx(lease.key));
    test::with_pool(db.dsn(), {},
                    [&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, "node-a", {{lease, 4}}, items); });
    for (const auto& item : items) t.push_back(item.tx_id);
    mine(t[0], 1);
    end(t[0]);
    mine(t[1], 2);
  }

  WorkReport work() {
    WorkReport out;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> { out = co_await check_work(pool); });
    return out;
  }
  std::vector<Fault> records() {
    std::vector<Fault> out;
    test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> { out = co_await check_records(pool); });
    return out;
  }
  std::vector<Fault> work_faults() { return work().faults; }
  std::vector<Fault> one(const std::string& what, const Uuid& id) { return {{what, 1, {id.to_string()}}}; }
  // Changes the tables as no node does.
  void spoil(const std::string& sql, const Uuid& id) { admin.must(sql, pg::Params::of(id)); }

  SignerLease lease;
  std::vector<Uuid> t;
};

constexpr auto kEnd =
    "INSERT INTO tx_ended (tx_id, chain_id, state, retry_count) VALUES ($1, 31337, 'FAILED_FINAL', 0)";

TEST_F(Consistency, counts_what_is_open_and_what_waits) {
  const auto report = work();
  EXPECT_EQ(report.open, 3);
  EXPECT_EQ(report.waiting, 2);
  EXPECT_EQ(report.faults, std::vector<Fault>{});
  EXPECT_EQ(records(), std::vector<Fault>{});
}

TEST_F(Consistency, an_empty_database_has_no_faults) {
  admin.must("TRUNCATE managed_tx, tx_open, tx_ended, tx_receipt");
  EXPECT_EQ(work().open, 0);
  EXPECT_EQ(work_faults(), std::vector<Fault>{});
  EXPECT_EQ(records(), std::vector<Fault>{});
}

TEST_F(Consistency, finds_an_open_transaction_that_has_ended) {
  spoil(kEnd, t[2]);
  EXPECT_EQ(work_faults(), one("open and ended", t[2]));
}

TEST_F(Consistency, finds_an_open_transaction_without_a_nonce) {
  spoil("UPDATE managed_tx SET nonce = NULL WHERE tx_id = $1", t[2]);
  const auto faults = work_faults();
  ASSERT_EQ(faults.size(), 2u);  // it also stands before the first that waits
  EXPECT_EQ(faults[0].what, "open without a nonce in its record");
  EXPECT_EQ(faults[1].what, "waiting below first_waiting of its signer");
}

TEST_F(Consistency, finds_an_open_transaction_without_a_record) {
  spoil("DELETE FROM managed_tx WHERE tx_id = $1", t[2]);
  EXPECT_EQ(work_faults(), one("open without a record", t[2]));
}

TEST_F(Consistency, finds_an_open_transaction_with_another_nonce_signer_or_chain) {
  for (const auto* change : {"nonce = 77", "signer = '0xdead'", "chain_id = 1"}) {
    spoil(fmt::format("UPDATE tx_open SET {} WHERE tx_id = $1", change), t[2]);
    EXPECT_EQ(work_faults(), one("open under another signer or nonce than in its record", t[2])) << change;
    spoil(
        "UPDATE tx_open AS o SET chain_id = m.chain_id, signer = m.signer, nonce = m.nonce FROM managed_tx AS m "
        "WHERE m.tx_id = o.tx_id AND o.tx_id = $1",
        t[2]);
  }
  EXPECT_EQ(work_faults(), std::vector<Fault>{});
}

// Such a transaction would never be found when its block is final, or could not get its receipt.
TEST_F(Consistency, finds_an_open_transaction_whose_receipt_differs) {
  spoil("DELETE FROM tx_receipt WHERE tx_id = $1", t[1]);
  EXPECT_EQ(work_faults(), one("open with another block than its receipt", t[1]));
  spoil("INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt) VALUES ($1, 31337, 2, '{}')", t[1]);
  spoil("INSERT INTO tx_receipt (tx_id, chain_id, receipt_block, receipt) VALUES ($1, 31337, 2, '{}')", t[3]);
  EXPECT_EQ(work_faults(), one("open with another block than its receipt", t[3]));
}

TEST_F(Consistency, finds_what_a_cursor_hides_from_the_workers) {
  EXPECT_EQ(admin.value<std::int64_t>("SELECT first_waiting FROM signer_nonce_cursor"), 4);
  admin.must("UPDATE signer_nonce_cursor SET first_waiting = 5, first_unmined = 3");
  const auto faults = work_faults();
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0], one("open below first_unmined of its signer", t[2])[0]);
  EXPECT_EQ(faults[1], one("waiting below first_waiting of its signer", t[4])[0]);
  admin.must("UPDATE signer_nonce_cursor SET first_waiting = 4, first_unmined = 2");  // nonce 1 is mined
  EXPECT_EQ(work_faults(), std::vector<Fault>{});
}

TEST_F(Consistency, finds_an_ended_transaction_without_a_nonce) {
  spoil(kEnd, t[5]);
  EXPECT_EQ(work_faults(), one("ended without a nonce in its record", t[5]));
}

TEST_F(Consistency, finds_a_transaction_that_is_nowhere) {
  spoil("DELETE FROM tx_open WHERE tx_id = $1", t[3]);
  EXPECT_EQ(records(), one("neither waiting, open nor ended", t[3]));
}

TEST_F(Consistency, finds_an_end_without_a_record) {
  spoil("DELETE FROM managed_tx WHERE tx_id = $1", t[0]);
  EXPECT_EQ(records(), one("ended without a record", t[0]));
}

TEST_F(Consistency, names_five_of_many_and_counts_all) {
  std::vector<NewTx> items;
  items.reserve(7);
  for (int i = 0; i < 7; ++i) items.push_back(new_tx(lease.key));
  test::with_pool(db.dsn(), {},
                  [&](pg::Pool& pool) -> awaitable<> { co_await create_batch(pool, "node-a", {{lease, 0}}, items); });
  admin.must("UPDATE signer_nonce_cursor SET first_waiting = next_creation");
  const auto faults = work_faults();
  ASSERT_EQ(faults.size(), 1u);
  EXPECT_EQ(faults[0].count, 9);
  EXPECT_EQ(faults[0].examples.size(), kFaultExamples);
  EXPECT_EQ(faults[0].examples[0], t[4].to_string());
}

TEST_F(Consistency, gives_up_when_the_time_is_over) {
  Session holder(db.dsn(), "migration");
  holder.must("BEGIN");
  holder.must("LOCK TABLE managed_tx IN ACCESS EXCLUSIVE MODE");
  auto options = test::connect_options(db.dsn());
  options.statement_timeout = 100ms;
  pg::Connector connector(options);
  Metrics metrics;
  const auto gives_up = [](auto check) -> awaitable<bool> {
    try {
      co_await std::move(check);
    } catch (const pg::QueryError& error) {
      co_return error.is_timeout();
    }
    co_return false;
  };
  run_blocking(test::run_with_pool(connector, pg::PoolOptions{}, metrics, [&](pg::Pool& pool) -> awaitable<> {
    EXPECT_TRUE(co_await gives_up(check_work(pool)));
    EXPECT_TRUE(co_await gives_up(check_records(pool)));
  }));
}

}  // namespace
}  // namespace fencepost::tx
