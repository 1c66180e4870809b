// Tests the creation of transactions: one batch, two concurrent batches, and that no nonce is lost or assigned twice.
#include "tx/store/create_store.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using interleaving::all_orders;
using interleaving::Answer;
using interleaving::commit;
using interleaving::opening;
using interleaving::Script;
using interleaving::script_of;
using interleaving::Session;
using interleaving::statement;
using interleaving::Theatre;

class CreateProtocol : public ProtocolTest {
 protected:
  using Outcomes = std::vector<std::string>;

  // Runs a whole batch and returns the outcomes, in order.
  Outcomes create(const std::vector<Allotment>& allotments, const std::vector<NewTx>& items,
                  const std::string& node = "node-a") {
    Outcomes out;
    theatre.play({{a, script_of(create_statements(node, allotments, items),
                                [&](Answer answer) {
                                  out = outcomes(answer);
                                  last = std::move(answer.rows);
                                })}},
                 {});
    return out;
  }

  std::int64_t promote_now(const SignerLease& lease, std::int64_t window) {
    std::int64_t promoted = 0;
    theatre.play(
        {{a, script_of(promote_statements("node-a", {{lease, window}}),
                       [&](const Answer& answer) { promoted = static_cast<std::int64_t>(answer.rows.size()); })}},
        {});
    return promoted;
  }

  // The nonces that the last batch returned, such as "0 1 2 - -".
  std::string nonces() const {
    std::string out;
    for (const auto row : last) {
      if (!out.empty()) out += ' ';
      const auto* nonce = row.is_null("known_nonce") ? "new_nonce" : "known_nonce";
      out += row.is_null(nonce) ? "-" : row.get<std::string>(nonce);
    }
    return out;
  }

  std::vector<NewTx> some(const SignerKey& key, int n) {
    std::vector<NewTx> items;
    items.reserve(n);
    for (int i = 0; i < n; ++i) items.push_back(new_tx(key));
    return items;
  }

  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "node-a"};
  Session b{db.dsn(), "node-a"};
  pg::ResultSet last;
};

TEST_F(CreateProtocol, numbers_in_order_from_the_cursor) {
  const auto lease = signer_of("node-a", 7);
  EXPECT_EQ(create({{lease, 0}}, some(lease.key, 3)), (Outcomes{"created", "created", "created"}));
  EXPECT_EQ(nonces(), "7 8 9");
  EXPECT_EQ(create({{lease, 0}}, some(lease.key, 1)), Outcomes{"created"});
  EXPECT_EQ(nonces(), "10");
  EXPECT_EQ(broken(lease.key, 7), "");
}

TEST_F(CreateProtocol, one_request_id_is_one_transaction_within_a_batch_and_after_it) {
  const auto lease = signer_of("node-a");
  EXPECT_EQ(create({{lease, 0}}, {new_tx(lease.key, "r1"), new_tx(lease.key, "r2"), new_tx(lease.key, "r1"),
                                  new_tx(lease.key, "r1", 'x'), new_tx(lease.key), new_tx(lease.key)}),
            (Outcomes{"created", "created", "existing", "conflict", "created", "created"}));
  EXPECT_EQ(nonces(), "0 1 0 0 2 3");
  EXPECT_EQ(create({{lease, 0}}, {new_tx(lease.key, "r2", 'x'), new_tx(lease.key, "r2"), new_tx(lease.key, "r3"),
                                  new_tx(lease.key, "r2", 'x')}),
            (Outcomes{"conflict", "existing", "created", "conflict"}));
  EXPECT_EQ(nonces(), "1 1 4 1");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, the_same_request_id_of_two_signers_is_two_transactions) {
  const auto one = signer_of("node-a");
  const auto two = signer_of("node-a");
  EXPECT_EQ(create({{one, 0}, {two, 0}}, {new_tx(one.key, "r"), new_tx(two.key, "r")}),
            (Outcomes{"created", "created"}));
}

TEST_F(CreateProtocol, a_fenced_signer_fails_alone) {
  const auto mine = signer_of("node-a");
  const auto lost = signer_of("node-b");
  const auto expired = signer_of("node-a");
  const auto old_token = signer_of("node-a");
  expire(expired.key);
  admin.must("UPDATE signer_lease SET fencing_token = 2 WHERE signer = $1", pg::Params::of(old_token.key.signer));
  const std::vector<Allotment> allotments{{old_token, 0}, {lost, 0}, {mine, 0}, {expired, 0}};
  EXPECT_EQ(create(allotments,
                   {new_tx(lost.key), new_tx(mine.key), new_tx(expired.key), new_tx(mine.key), new_tx(old_token.key)}),
            (Outcomes{"fenced", "created", "fenced", "created", "fenced"}));
  EXPECT_EQ(nonces(), "- 0 - 1 -");
  for (const auto& lease : {lost, expired, old_token}) EXPECT_EQ(count("true", lease.key), 0);
  for (const auto& lease : {mine, lost, expired}) EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, transactions_beyond_the_window_wait) {
  for (const std::int64_t window : {1, 3}) {
    const auto lease = signer_of("node-a");
    create({{lease, window}}, some(lease.key, 5));
    EXPECT_EQ(nonces(), window == 1 ? "0 - - - -" : "0 1 2 - -");
    // Even when the window has room again, a new transaction waits behind those that already wait.
    mine(id_at(lease.key, 0), 1);
    create({{lease, window}}, some(lease.key, 1));
    EXPECT_EQ(nonces(), "-");
    EXPECT_EQ(broken(lease.key), "");
  }
}

TEST_F(CreateProtocol, the_window_counts_what_has_a_nonce_and_no_receipt) {
  const auto lease = signer_of("node-a");
  create({{lease, 2}}, some(lease.key, 2));
  EXPECT_EQ(nonces(), "0 1");
  set(id_at(lease.key, 0), "state = 'STUCK'");
  mine(id_at(lease.key, 1), 1);
  create({{lease, 2}}, some(lease.key, 1));
  EXPECT_EQ(nonces(), "2");
  create({{lease, 2}}, some(lease.key, 1));
  EXPECT_EQ(nonces(), "-");
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, without_a_limit_no_transaction_waits) {
  const auto lease = signer_of("node-a");
  create({{lease, 0}}, some(lease.key, 300));
  EXPECT_EQ(count("nonce IS NOT NULL", lease.key), 300);
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, all_wait_until_the_cursor_is_seeded) {
  const auto lease = signer_of("node-a", std::nullopt);
  EXPECT_EQ(create({{lease, 0}}, some(lease.key, 2)), (Outcomes{"created", "created"}));
  EXPECT_EQ(nonces(), "- -");
  EXPECT_EQ(promote_now(lease, 0), 0);
  admin.must("UPDATE signer_nonce_cursor SET next_nonce = 5 WHERE signer = $1", pg::Params::of(lease.key.signer));
  EXPECT_EQ(promote_now(lease, 0), 2);
  EXPECT_EQ(broken(lease.key, 5), "");
}

TEST_F(CreateProtocol, a_signer_that_needs_reconcile_refuses_new_requests_and_finds_old_ones) {
  const auto lease = signer_of("node-a");
  create({{lease, 1}}, {new_tx(lease.key, "old"), new_tx(lease.key)});
  admin.must("UPDATE signer_nonce_cursor SET needs_reconcile = true WHERE signer = $1",
             pg::Params::of(lease.key.signer));
  EXPECT_EQ(create({{lease, 1}}, {new_tx(lease.key, "new"), new_tx(lease.key, "old"), new_tx(lease.key, "old", 'x')}),
            (Outcomes{"reconcile", "existing", "conflict"}));
  mine(id_at(lease.key, 0), 1);
  EXPECT_EQ(promote_now(lease, 1), 0);
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, promotion_follows_the_creation_order) {
  const auto lease = signer_of("node-a");
  create({{lease, 1}}, some(lease.key, 6));
  EXPECT_EQ(promote_now(lease, 1), 0);
  EXPECT_EQ(promote_now(lease, 3), 2);
  EXPECT_EQ(broken(lease.key), "");
  mine(id_at(lease.key, 0), 1);
  EXPECT_EQ(promote_now(lease, 3), 1);
  EXPECT_EQ(promote_now(lease, 0), 2);
  EXPECT_EQ(promote_now(lease, 0), 0);
  EXPECT_EQ(count("nonce = creation_seq", lease.key), 6);
  EXPECT_EQ(broken(lease.key), "");
}

// A promotion that wrote the work and not the record would leave a payment that is sent and looks as if it waited.
TEST_F(CreateProtocol, promotion_fails_as_a_whole_if_another_session_changes_the_record_meanwhile) {
  const auto lease = signer_of("node-a");
  const auto items = some(lease.key, 2);
  create({{lease, 1}}, items);
  mine(id_at(lease.key, 0), 1);
  Session psql(db.dsn(), "psql");
  psql.must("BEGIN");
  psql.must("UPDATE managed_tx SET gas_limit = 50000 WHERE tx_id = $1", pg::Params::of(items[1].tx_id));
  const auto batch = promote_statements("node-a", {{lease, 1}});
  a.must("BEGIN");
  for (std::size_t i = 0; i < 2; ++i) a.must(batch.entries()[i].statement->sql, batch.entries()[i].params);
  a.send(batch.entries()[2].statement->sql, batch.entries()[2].params);
  ASSERT_FALSE(theatre.settled(a));
  psql.must("COMMIT");
  EXPECT_EQ(a.take().sqlstate, "40001");
  a.must("ROLLBACK");
  EXPECT_EQ(state_of(items[1].tx_id), "CREATED");
  EXPECT_EQ(broken(lease.key), "");
  EXPECT_EQ(promote_now(lease, 1), 1);
  EXPECT_EQ(count("nonce = 1 AND gas_limit = 50000", lease.key), 1);
  EXPECT_EQ(broken(lease.key), "");
}

TEST_F(CreateProtocol, promotion_is_fenced) {
  const auto lease = signer_of("node-a");
  create({{lease, 1}}, some(lease.key, 2));
  expire(lease.key);
  EXPECT_EQ(promote_now(lease, 0), 0);
  EXPECT_EQ(count("nonce IS NOT NULL", lease.key), 1);
}

// The answer to a batch is lost while the batch still runs, and the client retries on another session.
class CreateRetry : public CreateProtocol {
 protected:
  struct Retry {
    Outcomes first, second;
    std::int64_t rows = 0;
    std::string wrong;
  };

  // `as` makes the script of a batch.
  template <class MakeScript>
  Retry play(const interleaving::Order& order, MakeScript as) {
    const auto lease = signer_of("node-a");
    Retry out;
    const auto batch = [&] {
      return create_statements("node-a", {{lease, 0}}, {new_tx(lease.key, "r1"), new_tx(lease.key, "r2")});
    };
    theatre.play({{a, as(batch(), [&](const Answer& x) { out.first = outcomes(x); })},
                  {b, as(batch(), [&](const Answer& x) { out.second = outcomes(x); })}},
                 order);
    out.rows = count("true", lease.key);
    out.wrong = broken(lease.key);
    return out;
  }
};

TEST_F(CreateRetry, finds_the_transactions_of_the_first_batch) {
  const Outcomes created{"created", "created"}, existing{"existing", "existing"};
  int waited = 0;
  for (const auto& order : all_orders({4, 4})) {
    const auto r = play(order, [](const pg::Batch& batch, auto then) { return script_of(batch, then); });
    EXPECT_TRUE((r.first == created && r.second == existing) || (r.first == existing && r.second == created))
        << theatre.trace();
    EXPECT_EQ(r.rows, 2) << theatre.trace();
    EXPECT_EQ(r.wrong, "") << theatre.trace();
    waited += theatre.trace().contains("tx_cursor_lock(waits)");
  }
  EXPECT_GT(waited, 0);
}

// The same, but one statement locks the cursor and creates: its snapshot is older than its wait for the lock.
TEST_F(CreateRetry, would_fail_if_one_statement_locked_and_created) {
  std::string sql(sql::kCreateBatch.sql);
  const auto put = [&sql](std::string_view at, std::string_view with) {
    const auto place = sql.find(at);
    ASSERT_NE(place, std::string::npos) << at;
    sql.replace(place, at.size(), with);
  };
  put("WHERE (l.owner_node = $1", "WHERE w.signer IN (SELECT signer FROM locked) AND (l.owner_node = $1");
  put("WITH held AS", fmt::format("WITH locked AS MATERIALIZED ({}), held AS", sql::kLockCursors.sql));
  if (HasFatalFailure()) return;

  int failed = 0, fine = 0;
  for (const auto& order : all_orders({3, 3})) {
    const auto r = play(order, [&sql](const pg::Batch& batch, auto then) {
      const auto& [lock, cursors, create] = std::tie(batch.entries()[0], batch.entries()[1], batch.entries()[2]);
      return Script{opening(statement("lock", lock.statement->sql, lock.params)),
                    statement("lock and create", sql, create.params, then),
                    statement("commit", "COMMIT", {}, [](const Answer&) {})};
    });
    failed += r.second == Outcomes{"23505"} || r.first == Outcomes{"23505"};
    fine += r.rows == 2 && r.wrong.empty();
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(fine, 20);  // the unique indexes refuse the retry, so there is no second payment
}

TEST_F(CreateProtocol, two_batches_of_one_signer_come_one_after_the_other) {
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    int created = 0;
    const auto batch = [&] {
      return script_of(create_statements("node-a", {{lease, 3}}, some(lease.key, 2)), [&](const Answer& x) {
        const auto got = outcomes(x);
        created += static_cast<int>(std::ranges::count(got, "created"));
      });
    };
    theatre.play({{a, batch()}, {b, batch()}}, order);
    EXPECT_EQ(created, 4) << theatre.trace();
    EXPECT_EQ(count("nonce IS NOT NULL", lease.key), 3) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
  }
}

TEST_F(CreateProtocol, batches_over_the_same_signers_in_other_orders_do_not_deadlock) {
  for (const auto& order : all_orders({4, 4})) {
    const auto one = signer_of("node-a");
    const auto two = signer_of("node-a");
    const auto batch = [&](const SignerLease& x, const SignerLease& y) {
      return script_of(create_statements("node-a", {{x, 0}, {y, 0}}, {new_tx(x.key), new_tx(y.key)}));
    };
    theatre.play({{a, batch(one, two)}, {b, batch(two, one)}}, order);
    for (const auto& lease : {one, two}) {
      EXPECT_EQ(count("true", lease.key), 2) << theatre.trace();
      EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    }
  }
}

TEST_F(CreateProtocol, promotion_and_creation_race_in_any_order) {
  for (const auto& order : all_orders({4, 4})) {
    const auto lease = signer_of("node-a");
    create({{lease, 1}}, some(lease.key, 3));
    mine(id_at(lease.key, 0), 1);
    theatre.play({{a, script_of(promote_statements("node-a", {{lease, 2}}))},
                  {b, script_of(create_statements("node-a", {{lease, 2}}, some(lease.key, 2)))}},
                 order);
    EXPECT_EQ(count("true", lease.key), 5) << theatre.trace();
    EXPECT_EQ(count("nonce IS NOT NULL", lease.key), 3) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
  }
}

// Calls create_batch itself, to check how it reads the results.
TEST_F(CreateProtocol, answers_with_the_transaction) {
  const auto lease = signer_of("node-a", 3);
  const auto other = signer_of("node-b");
  test::with_pool(db.dsn(), {}, [&](pg::Pool& pool) -> awaitable<> {
    const std::vector<NewTx> items{new_tx(lease.key, "r1"), new_tx(other.key), new_tx(lease.key, "r1", 'x')};
    const auto results = co_await create_batch(pool, "node-a", {{lease, 1}, {other, 1}}, items);
    EXPECT_EQ(results.size(), 3u);
    EXPECT_EQ(results[0].outcome, CreateOutcome::kCreated);
    EXPECT_EQ(results[1].outcome, CreateOutcome::kFenced);
    EXPECT_EQ(results[2].outcome, CreateOutcome::kConflict);
    EXPECT_FALSE(results[1].tx);
    const auto& tx = results[0].tx.value();
    EXPECT_EQ(tx.tx_id, items[0].tx_id);
    EXPECT_EQ(tx.key, lease.key);
    EXPECT_EQ(tx.request_id, "r1");
    EXPECT_EQ(tx.nonce, 3);
    EXPECT_EQ(tx.creation_seq, 0);
    EXPECT_EQ(tx.state, TxState::kAllocated);
    EXPECT_EQ(tx.gas_limit, 21'000);
    EXPECT_EQ(tx.fencing_token, 1);
    EXPECT_EQ(tx.payload.at("to").as_string(), "p");
    EXPECT_EQ(results[2].tx.value().tx_id, items[0].tx_id);

    const std::vector<NewTx> more{new_tx(lease.key)};
    co_await create_batch(pool, "node-a", {{lease, 1}}, more);
    auto waiting = co_await signers_waiting(pool, {{lease, 1}, {other, 1}});
    EXPECT_TRUE(waiting.empty());  // its window is full
    waiting = co_await signers_waiting(pool, {{lease, 2}, {other, 2}});
    EXPECT_EQ(waiting, std::vector<SignerKey>{lease.key});
    const auto promoted = co_await promote(pool, "node-a", {{lease, 2}});
    EXPECT_EQ(promoted.size(), 1u);
    EXPECT_EQ(promoted[0].key, lease.key);
    EXPECT_EQ(promoted[0].tx_id, more[0].tx_id);
    EXPECT_EQ(promoted[0].nonce, 4);
    EXPECT_EQ(promoted[0].payload, R"({"to": "p"})");
    EXPECT_EQ(promoted[0].gas_limit, 21'000);
    waiting = co_await signers_waiting(pool, {{lease, 0}, {other, 0}});
    EXPECT_TRUE(waiting.empty());
  });
}

}  // namespace
}  // namespace fencepost::tx
