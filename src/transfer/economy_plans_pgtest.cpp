// On large tables the calls of a node read in proportion to their set, not to the tables. The planner knows the sizes
// (pg/statistics_keeper.hpp), except for transfer_work: its statistics often say empty while it is full.
#include "transfer/economy_test_support.hpp"

namespace fencepost::transfer {
namespace {

class EconomyPlans : public EconomyTest {
 protected:
  void SetUp() override {
    EconomyTest::SetUp();
    node.must(
        "SELECT set_config('enable_seqscan', 'off', false), "
        "set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)");
    for (std::int64_t member = 1; member <= 100; ++member) mint(member, 1'000);
    // 20,000 waiting transfers, 50,000 finished ones, and as many accounts.
    tamper(R"(
      INSERT INTO economy.accounts (guild_id, member_id) SELECT 7, 1000 + n FROM generate_series(1, 50000) AS n;
      INSERT INTO economy.pending_transfers (transfer_id, guild_id, initiator_id, target_id, amount, status, expires_at)
      SELECT gen_random_uuid(), 7, 1000 + n % 5000, 1, 1000000, CASE WHEN n <= 20000 THEN 'checking' ELSE 'completed' END,
             '9000-01-01' FROM generate_series(1, 70000) AS n;
      INSERT INTO economy.transfer_work
      SELECT transfer_id, seq, guild_id, initiator_id, amount, economy._lane(7), false, 1, '9000-01-01', '9000-01-01',
             '9000-01-01' FROM economy.pending_transfers WHERE status = 'checking';
      INSERT INTO economy.transactions (transfer_id, kind, guild_id, debit_id, credit_id, amount, debit_after,
                                        credit_after)
      SELECT transfer_id, 'transfer', 7, initiator_id, target_id, amount, 0, 0
        FROM economy.pending_transfers WHERE status = 'completed';
      ANALYZE economy.accounts, economy.pending_transfers, economy.transactions;
      CREATE TABLE work AS SELECT * FROM economy.transfer_work;
      DELETE FROM economy.transfer_work)");
    admin.must("VACUUM (ANALYZE, TRUNCATE false) economy.transfer_work");  // the planner sees pages without rows
    admin.must("INSERT INTO economy.transfer_work SELECT * FROM work");
  }

  void some(int n) {
    std::vector<Wish> wishes;
    wishes.reserve(n);
    for (int i = 0; i < n; ++i) {
      wishes.push_back({.from = 1 + i % 50, .to = 51 + i % 50, .amount = 1, .key = fmt::format("{}-{}", n, i)});
    }
    node.must(kCreate, create_params(wishes));
  }

  // How many rows of the economy's tables and entries of their indexes the call has read.
  std::int64_t looked_at(const std::function<void()>& call) {
    constexpr std::string_view kCount =
        "SELECT (SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables WHERE schemaname = 'economy') "
        "+ (SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) FROM pg_stat_user_indexes "
        "    WHERE schemaname = 'economy')";
    node.must("BEGIN");
    const auto before = node.value<std::int64_t>(kCount);
    call();
    const auto after = node.value<std::int64_t>(kCount);
    node.must("COMMIT");
    return after - before;
  }

  Session node{db.dsn(), "node"};
};

TEST_F(EconomyPlans, reads_grow_with_the_set_and_not_with_the_tables) {
  constexpr int kSet = 100;
  constexpr int kLooksPerItem = 60;  // rows and index entries, each some dozen times
  EXPECT_LT(looked_at([&] { some(kSet); }), kSet * kLooksPerItem) << "create";
  EXPECT_LT(looked_at([&] { EXPECT_EQ(node.must(kProcess).one().get<int>("completed"), kSet); }), kSet * kLooksPerItem)
      << "complete";
  // Retries: a hundred waiting transfers become due.
  tamper(
      "UPDATE economy.transfer_work SET due_at = now() WHERE transfer_id IN "
      "(SELECT transfer_id FROM economy.transfer_work ORDER BY seq LIMIT 100)");
  EXPECT_LT(looked_at([&] { EXPECT_EQ(node.must(kProcess).one().get<int>("waiting"), kSet); }), kSet * kLooksPerItem)
      << "retry";
  std::vector<Wish> wishes;
  wishes.reserve(kSet);
  for (int i = 0; i < kSet; ++i) wishes.push_back({.from = 1 + i % 50, .to = 1001 + i, .amount = 1});
  EXPECT_LT(looked_at([&] { node.must(kNow, now_params(wishes)); }), kSet * kLooksPerItem) << "synchronous";
  // A credit to a payer with thousands of transfers that wait for another check than the balance.
  tamper("UPDATE economy.transfer_work SET initiator_id = 1001, failed_on = 4 WHERE initiator_id > 1100");
  EXPECT_LT(looked_at([&] { node.must(kNow, now_params({{.from = 1, .to = 1001, .amount = 1}})); }), 200) << "credit";
  const auto id = node.value<Uuid>("SELECT transfer_id FROM economy.transfer_work LIMIT 1");
  EXPECT_LT(looked_at([&] { node.must(kCancel, pg::Params::of(id)); }), 200) << "cancel";
  EXPECT_LT(looked_at([&] { node.must(kExpire); }), 200) << "expire";
  for (const std::string status : {"checking", "rejected", "completed"}) {
    EXPECT_LT(looked_at([&] {
                node.must("SELECT * FROM economy.fn_list_pending_transfers(7, $1, 10)", pg::Params::of(status));
              }),
              200)
        << status;
  }
  EXPECT_LT(looked_at([&] { node.must(kProcess); }), 500) << "nothing is due";
}

}  // namespace
}  // namespace fencepost::transfer
