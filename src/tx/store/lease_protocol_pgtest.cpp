// Tests the lease and the fence in every order of statements that matters. Simpler statements that look sufficient are
// tested, too, and must fail: this proves that the tests detect a stale write.
#include "pg/error.hpp"
#include "tests/support/eventually.hpp"
#include "tx/store/lease_store.hpp"
#include "tx/store/protocol_test_support.hpp"

namespace fencepost::tx {
namespace {

using namespace std::chrono_literals;
using interleaving::all_orders;
using interleaving::Answer;
using interleaving::commit;
using interleaving::opening;
using interleaving::Order;
using interleaving::Script;
using interleaving::script_of;
using interleaving::Session;
using interleaving::statement;
using interleaving::Theatre;
using interleaving::Turn;

// Takeovers that look right but are broken.
constexpr std::string_view kPlainTakeover = R"(
  UPDATE signer_lease
     SET owner_node = $1, fencing_token = fencing_token + 1, expires_at = clock_timestamp() + interval '10 s'
   WHERE chain_id = $2 AND signer = ANY ($3::text[])
     AND expires_at <= clock_timestamp() - make_interval(secs => $5 / 1000.0)
     AND $4 > 0
  RETURNING signer)";
constexpr std::string_view kUpsertTakeover = R"(
  INSERT INTO signer_lease AS l (chain_id, signer, owner_node, fencing_token, expires_at)
  SELECT $2, s, $1, 0, clock_timestamp() + interval '10 s' FROM unnest($3::text[]) AS s WHERE $4 > 0
      ON CONFLICT (chain_id, signer) DO UPDATE
         SET owner_node = $1, fencing_token = l.fencing_token + 1, expires_at = clock_timestamp() + interval '10 s'
       WHERE l.expires_at <= clock_timestamp() - make_interval(secs => $5 / 1000.0)
  RETURNING signer)";

class LeaseProtocol : public ProtocolTest {
 protected:
  struct Race {
    std::string write;      // outcome of node-a's create
    bool taken = false;     // node-b took the lease
    std::int64_t late = 0;  // transactions that node-a wrote under its old token after the takeover was committed
    bool waited = false;    // the takeover waited for the writer
    std::string trace;
  };

  pg::Batch create_of(const SignerLease& lease, std::optional<std::string> request = std::nullopt) {
    return create_statements("node-a", {{lease, 0}}, {new_tx(lease.key, std::move(request))});
  }

  // node-a creates a transaction, and node-b takes over the lease after it has expired.
  Race race(const Order& order, std::string_view takeover, bool with_lock = true) {
    Race out;
    const auto lease = signer_of("node-a");
    auto writer = script_of(create_of(lease), [&](const Answer& answer) { out.write = outcomes(answer).front(); });
    if (!with_lock) {
      writer.erase(writer.begin());
      writer.front() = opening(writer.front());
    }
    std::int64_t at_takeover = 0;
    const Script taker{
        statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer)),
        opening(statement("takeover", takeover, acquire_params("node-b", {lease.key.signer}),
                          [&](const Answer& answer) { out.taken = answer.ok() && answer.rows.size() == 1; })),
        commit([&] { at_takeover = count("fencing_token = 1", lease.key); }),
    };
    theatre.play({{a, writer}, {b, taker}}, order);
    out.late = count("fencing_token = 1", lease.key) - at_takeover;
    out.trace = theatre.trace();
    out.waited = out.trace.contains("takeover(waits)");
    EXPECT_EQ(broken(lease.key), "") << out.trace;
    EXPECT_EQ(owner_of(lease.key), out.taken ? "node-b/2" : "node-a/1") << out.trace;
    expect_fenced(lease);
    return out;
  }

  // The former owner continues to write under its old token.
  void expect_fenced(const SignerLease& lease) {
    const auto before = count("true", lease.key);
    std::vector<std::string> got;
    theatre.play({{a, script_of(create_of(lease), [&](const Answer& answer) { got = outcomes(answer); })}}, {});
    EXPECT_EQ(got, std::vector<std::string>{"fenced"});
    EXPECT_EQ(count("true", lease.key), before);
  }

  Theatre theatre{db.dsn()};
  Session a{db.dsn(), "node-a"};
  Session b{db.dsn(), "node-b"};
};

TEST_F(LeaseProtocol, a_takeover_waits_for_writes_that_have_passed_the_fence) {
  int created = 0, fenced = 0, waited = 0;
  for (const auto& order : all_orders({4, 3})) {
    const auto r = race(order, sql::kAcquireLeases.sql);
    EXPECT_TRUE(r.taken) << r.trace;
    EXPECT_EQ(r.late, 0) << r.trace;
    created += r.write == "created";
    fenced += r.write == "fenced";
    waited += r.waited;
  }
  EXPECT_EQ(created + fenced, 35);
  EXPECT_GT(created, 0);
  EXPECT_GT(fenced, 0);
  EXPECT_GT(waited, 0);
}

TEST_F(LeaseProtocol, a_takeover_by_plain_update_would_let_an_old_write_through) {
  int broken_orders = 0;
  for (const auto& order : all_orders({4, 3})) {
    const auto r = race(order, kPlainTakeover);
    EXPECT_FALSE(r.waited);
    broken_orders += r.late > 0;
  }
  EXPECT_GT(broken_orders, 0);
}

TEST_F(LeaseProtocol, a_takeover_by_upsert_would_let_an_old_write_through) {
  int broken_orders = 0;
  for (const auto& order : all_orders({4, 3})) {
    const auto r = race(order, kUpsertTakeover);
    EXPECT_FALSE(r.waited);
    broken_orders += r.late > 0;
  }
  EXPECT_GT(broken_orders, 0);
}

TEST_F(LeaseProtocol, a_check_without_the_lock_would_let_an_old_write_through) {
  int broken_orders = 0;
  for (const auto& order : all_orders({3, 3})) {
    const auto r = race(order, sql::kAcquireLeases.sql, false);
    EXPECT_FALSE(r.waited);
    broken_orders += r.late > 0;
  }
  EXPECT_GT(broken_orders, 0);
}

TEST_F(LeaseProtocol, a_takeover_that_waited_gives_up_when_the_owner_has_renewed_meanwhile) {
  const auto lease = signer_of("node-a");
  std::string write;
  int taken = -1;
  auto writer = script_of(create_of(lease), [&](const Answer& answer) { write = outcomes(answer).front(); });
  const Script taker{
      statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer)),
      opening(statement("takeover", sql::kAcquireLeases.sql, acquire_params("node-b", {lease.key.signer}),
                        [&](const Answer& answer) { taken = answer.rows.size(); })),
      commit(),
  };
  Session owner(db.dsn(), "node-a");
  const Script renewal{
      statement("renew", "UPDATE signer_lease SET expires_at = clock_timestamp() + interval '10 s' WHERE signer = $1",
                pg::Params::of(lease.key.signer))};
  theatre.play({{a, writer}, {b, taker}, {owner, renewal}}, {0, 1, 1, 2, 0, 0, 0, 1});
  EXPECT_TRUE(theatre.trace().contains("takeover(waits)")) << theatre.trace();
  EXPECT_EQ(write, "created");
  EXPECT_EQ(taken, 0);
  EXPECT_EQ(owner_of(lease.key), "node-a/1");
}

TEST_F(LeaseProtocol, a_new_signer_goes_to_one_of_two_nodes) {
  int signer = 0;
  for (const auto& order : all_orders({4, 4})) {
    const SignerKey key{kChain, fmt::format("0x{:040x}", 0xabc000 + ++signer)};
    std::vector<int> got(2, -1);
    const auto taker = [&](const std::string& node, int& rows) {
      const std::vector<std::string> signers{key.signer};
      return Script{opening(statement("leases", sql::kPrepareLeases.sql, pg::Params::of(kChain, signers))),
                    statement("cursors", sql::kPrepareCursors.sql, pg::Params::of(kChain, signers)),
                    statement("acquire", sql::kAcquireLeases.sql, acquire_params(node, signers),
                              [&](const Answer& answer) { rows = answer.ok() ? answer.rows.size() : -2; }),
                    commit()};
    };
    theatre.play({{a, taker("node-a", got[0])}, {b, taker("node-b", got[1])}}, order);
    EXPECT_EQ(got[0] + got[1], 1) << theatre.trace();
    EXPECT_EQ(owner_of(key), got[0] == 1 ? "node-a/1" : "node-b/1");
  }
}

TEST_F(LeaseProtocol, acquiring_a_held_lease_keeps_the_token_unless_it_has_expired) {
  const auto lease = signer_of("node-a");
  auto again = a.ask(sql::kAcquireLeases, acquire_params("node-a", {lease.key.signer}));
  EXPECT_EQ(again.rows.one().get<std::int64_t>("fencing_token"), 1);
  EXPECT_FALSE(again.rows.one().get<bool>("taken"));
  EXPECT_EQ(b.ask(sql::kAcquireLeases, acquire_params("node-b", {lease.key.signer})).rows.size(), 0);
  expire(lease.key);
  again = a.ask(sql::kAcquireLeases, acquire_params("node-a", {lease.key.signer}));
  EXPECT_EQ(again.rows.one().get<std::int64_t>("fencing_token"), 2);
  EXPECT_TRUE(again.rows.one().get<bool>("taken"));
}

TEST_F(LeaseProtocol, only_the_owner_may_renew_within_the_skew_allowance) {
  const auto lease = signer_of("node-a");
  admin.must("UPDATE signer_lease SET expires_at = clock_timestamp() - interval '5 s'");
  const auto with_skew = [&](std::string node, std::int64_t skew) {
    return pg::Params::of(node, kChain, std::vector<std::string>{lease.key.signer}, 10'000, skew);
  };
  EXPECT_EQ(b.ask(sql::kAcquireLeases, with_skew("node-b", 60'000)).rows.size(), 0);
  EXPECT_EQ(a.ask(sql::kRenewLeases, lease_params("node-a", {lease}).add(10'000).add(1'000)).rows.size(), 0);
  EXPECT_EQ(a.ask(sql::kRenewLeases, lease_params("node-a", {lease}).add(10'000).add(60'000)).rows.size(), 1);
  EXPECT_EQ(owner_of(lease.key), "node-a/1");
}

TEST_F(LeaseProtocol, one_takeover_does_not_delay_the_renewal_of_other_leases) {
  std::vector<SignerLease> leases;
  leases.reserve(6);
  for (int i = 0; i < 6; ++i) leases.push_back(signer_of("node-a"));
  admin.must("UPDATE signer_lease SET expires_at = clock_timestamp() + interval '5 s'");
  expire(leases[2].key);
  b.must("BEGIN");
  ASSERT_EQ(b.ask(sql::kAcquireLeases, acquire_params("node-b", {leases[2].key.signer})).rows.size(), 1);
  // Another session has locked a lease that is not expired: the renewal must skip it without waiting.
  b.must("SELECT FROM signer_lease WHERE signer = $1 FOR UPDATE", pg::Params::of(leases[4].key.signer));

  a.send(sql::kRenewLeases.sql, renew_params("node-a", leases));
  ASSERT_TRUE(theatre.settled(a));
  std::set<std::string> renewed;
  for (const auto row : a.take().rows) renewed.insert(row.get<std::string>("signer"));
  EXPECT_EQ(renewed, (std::set<std::string>{leases[0].key.signer, leases[1].key.signer, leases[3].key.signer,
                                            leases[5].key.signer}));
  b.must("COMMIT");
  EXPECT_EQ(a.ask(sql::kRenewLeases, renew_params("node-a", leases)).rows.size(), 5);
  EXPECT_EQ(owner_of(leases[2].key), "node-b/2");
}

TEST_F(LeaseProtocol, renewal_and_writers_never_wait_for_each_other) {
  for (const auto& order : all_orders({4, 2})) {
    const auto lease = signer_of("node-a");
    int renewed = 0;
    std::string write;
    theatre.play({{a, script_of(create_of(lease), [&](const Answer& x) { write = outcomes(x).front(); })},
                  {b,
                   {opening(statement("renew", sql::kRenewLeases.sql, renew_params("node-a", {lease}),
                                      [&](const Answer& x) { renewed = x.rows.size(); })),
                    commit()}}},
                 order);
    EXPECT_FALSE(theatre.trace().contains("waits")) << theatre.trace();
    EXPECT_EQ(renewed, 1);
    EXPECT_EQ(write, "created");
  }
}

TEST_F(LeaseProtocol, a_renewal_comes_too_late_for_a_lease_that_is_being_taken) {
  const auto lease = signer_of("node-a");
  expire(lease.key);
  for (const bool committed : {false, true}) {
    b.must(committed ? "COMMIT" : "BEGIN");
    if (!committed) ASSERT_EQ(b.ask(sql::kAcquireLeases, acquire_params("node-b", {lease.key.signer})).rows.size(), 1);
    EXPECT_EQ(a.ask(sql::kRenewLeases, renew_params("node-a", {lease})).rows.size(), 0);
  }
}

TEST_F(LeaseProtocol, after_a_release_the_next_owner_still_waits_for_the_last_write) {
  int created = 0, fenced = 0, waited = 0;
  for (const auto& order : all_orders({4, 3})) {
    const auto lease = signer_of("node-a");
    std::string write;
    std::int64_t at_takeover = 0;
    int taken = 0;
    theatre.play({{a, script_of(create_of(lease), [&](const Answer& x) { write = outcomes(x).front(); })},
                  {b,
                   {statement("release", sql::kReleaseLeases.sql, lease_params("node-a", {lease})),
                    opening(statement("takeover", sql::kAcquireLeases.sql, acquire_params("node-b", {lease.key.signer}),
                                      [&](const Answer& x) { taken = x.rows.size(); })),
                    commit([&] { at_takeover = count("fencing_token = 1", lease.key); })}}},
                 order);
    EXPECT_FALSE(theatre.trace().contains("release(waits)")) << theatre.trace();
    EXPECT_EQ(taken, 1) << theatre.trace();
    EXPECT_EQ(count("fencing_token = 1", lease.key), at_takeover) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    created += write == "created";
    fenced += write == "fenced";
    waited += theatre.trace().contains("takeover(waits)");
    expect_fenced(lease);
  }
  EXPECT_EQ(created + fenced, 35);
  EXPECT_GT(created, 0);
  EXPECT_GT(fenced, 0);
  EXPECT_GT(waited, 0);
}

TEST_F(LeaseProtocol, only_the_owner_releases_and_only_what_it_holds_now) {
  const auto lease = signer_of("node-a");
  EXPECT_EQ(a.ask(sql::kReleaseLeases, lease_params("node-b", {lease})).rows.affected(), 0);
  EXPECT_EQ(a.ask(sql::kReleaseLeases, lease_params("node-a", {{lease.key, 7}})).rows.affected(), 0);
  EXPECT_EQ(a.ask(sql::kReleaseLeases, lease_params("node-a", {lease})).rows.affected(), 1);
  EXPECT_EQ(owner_of(lease.key), "/1");
}

// A release and a takeover of the same leases: the release covers only leases that are not locked, and does not wait.
TEST_F(LeaseProtocol, a_release_of_several_leases_waits_for_no_takeover) {
  const auto first = signer_of("node-a");
  const auto second = signer_of("node-a");
  expire(first.key);
  expire(second.key);
  Session holder(db.dsn(), "node-a");
  holder.must("BEGIN");
  holder.must("SELECT FROM signer_lease WHERE signer = $1 FOR UPDATE", pg::Params::of(first.key.signer));
  b.send(sql::kAcquireLeases.sql, acquire_params("node-b", {second.key.signer, first.key.signer}));
  ASSERT_FALSE(theatre.settled(b));
  EXPECT_EQ(a.ask(sql::kReleaseLeases, lease_params("node-a", {second, first})).rows.affected(), 1);
  EXPECT_EQ(owner_of(second.key), "/1");
  holder.must("COMMIT");
  EXPECT_EQ(b.take().sqlstate, "");
  EXPECT_EQ(owner_of(first.key), "node-b/2");
  EXPECT_EQ(owner_of(second.key), "node-b/2");
}

// The lease of a batch expires, is renewed or is released while the batch runs.
class LeaseEdge : public LeaseProtocol {
 protected:
  struct Tally {
    int created = 0;
    int fenced = 0;
  };

  // Runs a create whose lease expires `expires` from now, with one statement of another session at every position.
  template <class MakeTurn>
  Tally play_all(std::string_view expires, MakeTurn make_turn) {
    Tally tally;
    for (const auto& order : all_orders({4, 1})) {
      const auto lease = signer_of("node-a");
      admin.must(fmt::format("UPDATE signer_lease SET expires_at = clock_timestamp() + interval '{}' WHERE signer = $1",
                             expires),
                 pg::Params::of(lease.key.signer));
      std::string write;
      theatre.play({{a, script_of(create_of(lease), [&](const Answer& x) { write = outcomes(x).front(); })},
                    {b, {make_turn(lease)}}},
                   order);
      EXPECT_FALSE(theatre.trace().contains("waits")) << theatre.trace();
      EXPECT_EQ(broken(lease.key), "") << theatre.trace();
      EXPECT_EQ(count("true", lease.key), write == "created" ? 1 : 0);
      tally.created += write == "created";
      tally.fenced += write == "fenced";
    }
    return tally;
  }
};

TEST_F(LeaseEdge, a_batch_succeeds_if_its_expired_lease_is_renewed_in_time) {
  const auto tally = play_all("-5 s", [](const SignerLease& lease) {
    return statement("renew", sql::kRenewLeases.sql, lease_params("node-a", {lease}).add(10'000).add(60'000));
  });
  EXPECT_EQ(tally.created, 3);  // renewed before the third statement
  EXPECT_EQ(tally.fenced, 2);
}

TEST_F(LeaseEdge, a_lease_that_expires_half_way_fences_the_batch) {
  const auto tally = play_all("1 h", [](const SignerLease& lease) {
    return statement("expire", kExpire, pg::Params::of(kChain, lease.key.signer));
  });
  EXPECT_EQ(tally.created, 2);
  EXPECT_EQ(tally.fenced, 3);
}

TEST_F(LeaseEdge, a_lease_that_is_released_half_way_fences_the_batch) {
  const auto tally = play_all("1 h", [](const SignerLease& lease) {
    return statement("release", sql::kReleaseLeases.sql, lease_params("node-a", {lease}));
  });
  EXPECT_EQ(tally.created, 2);
  EXPECT_EQ(tally.fenced, 3);
}

// Two lanes of one node use a lease that is expired when they lock it and renewed when they assign nonces.
TEST_F(LeaseEdge, two_batches_under_a_lease_renewed_half_way_share_no_nonce) {
  Session c(db.dsn(), "node-a");
  int both = 0;
  for (const auto& order : all_orders({3, 3, 1})) {
    const auto lease = signer_of("node-a");
    admin.must("UPDATE signer_lease SET expires_at = clock_timestamp() - interval '5 s' WHERE signer = $1",
               pg::Params::of(lease.key.signer));
    std::vector<std::string> writes(2);
    const auto lane = [&](std::string& write) {
      auto script = script_of(create_of(lease), [&write](const Answer& x) { write = outcomes(x).front(); });
      script.erase(script.begin());  // the lease is already locked below: the time of that lock does not matter here
      return script;
    };
    for (auto* session : {&a, &b}) {
      session->must("BEGIN");
      session->must(sql::kLockLeases.sql, pg::Params::of(std::vector{kChain}, std::vector{lease.key.signer}));
    }
    theatre.play(
        {{a, lane(writes[0])},
         {b, lane(writes[1])},
         {c, {statement("renew", sql::kRenewLeases.sql, lease_params("node-a", {lease}).add(10'000).add(60'000))}}},
        order);
    const auto created = std::ranges::count(writes, "created");
    EXPECT_EQ(std::ranges::count(writes, "fenced"), 2 - created) << theatre.trace();
    EXPECT_EQ(count("true", lease.key), created) << theatre.trace();
    EXPECT_EQ(broken(lease.key), "") << theatre.trace();
    both += created == 2;
  }
  EXPECT_GT(both, 0);
}

}  // namespace
}  // namespace fencepost::tx
