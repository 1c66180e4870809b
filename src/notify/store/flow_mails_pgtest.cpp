// The rows that say who gets which mail: each at most once, and only from the consumer that holds its claim.
#include "notify/notify_test_support.hpp"

namespace fencepost::notify {
namespace {

using Ids = std::vector<std::int64_t>;

class FlowMails : public NotifyTest {
 protected:
  std::optional<std::int64_t> add(const FlowChange& change, const Ids& emails) { return add(claim, change, emails); }
  std::optional<std::int64_t> add(const outbox::Claim& by, const FlowChange& change, const Ids& emails) {
    std::optional<std::int64_t> out;
    with_pool([&](pg::Pool& pool) -> awaitable<> { out = co_await add_flow_mails(pool, by, {{change, emails}}); });
    return out;
  }
};

TEST_F(FlowMails, are_one_for_an_address_that_several_people_share) {
  for (const int number : {1, 2}) subscribe(add_address(add_user(number), "team@example.org"), {.scope = "all"});
  Ids candidates;
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    candidates = email_ids((co_await find_candidates(pool, {queued()})).at(0).by_contract.candidates);
  });
  EXPECT_EQ(candidates.size(), 2U);
  EXPECT_EQ(add(queued(), candidates), 1);
  EXPECT_EQ(mails(), "pending|change|0");
}

TEST_F(FlowMails, that_are_offered_again_add_nothing) {
  const auto first = add_subscriber(1), second = add_subscriber(2);
  EXPECT_EQ(add(queued(), {first}), 1);
  EXPECT_EQ(add(queued(), {first}), 0);
  EXPECT_EQ(add(queued(), {first, second}), 1) << "only the new address";
  EXPECT_EQ(count("email_send_logs"), 2);
}

TEST_F(FlowMails, say_what_changed) {
  auto change = queued();
  change.from = "waiting";
  change.to = "ready";
  change.via = wallet(5);
  add(change, {add_subscriber(1)});
  EXPECT_EQ(only("concat_ws(' ', timelock_standard, chain_id, contract_address, flow_id, generation, status_from, "
                 "status_to, tx_hash, extract(epoch FROM changed_at)::bigint, initiator_address, via_address)"),
            fmt::format("compound 1 {} {} 1 waiting ready {} 1767312000 {} {}", kContract, flow_id(1), flow_id(9),
                        wallet(1), wallet(5)));
}

// A protocol has the same contract address, and so the same flow ids, on several chains.
TEST_F(FlowMails, of_another_chain_contract_standard_generation_or_status_are_other_mails) {
  const auto email = add_subscriber(1);
  const std::vector<void (*)(FlowChange&)> differences{
      [](FlowChange&) {},
      [](FlowChange& change) { change.ref.chain_id = 10; },
      [](FlowChange& change) { change.ref.contract = kOtherContract; },
      [](FlowChange& change) { change.ref.standard = "openzeppelin"; },
      [](FlowChange& change) { change.ref.flow_id = flow_id(2); },
      [](FlowChange& change) { change.ref.generation = 2; },
      [](FlowChange& change) { change.to = "ready"; },
      [](FlowChange& change) { change.retraction = 1; },
  };
  for (const int expected : {1, 0}) {
    for (std::size_t i = 0; i < differences.size(); ++i) {
      auto change = queued();
      differences[i](change);
      EXPECT_EQ(add(change, {email}), expected) << i;
    }
  }
}

TEST_F(FlowMails, are_not_written_under_a_lost_claim) {
  const auto email = add_subscriber(1);
  auto foreign = claim, old = claim, unknown = claim;
  foreign.node = "node-b";
  --old.token;
  unknown.consumer = "mail/other";
  for (const auto& lost : {foreign, old, unknown}) {
    EXPECT_EQ(add(lost, queued(), {email}), std::nullopt) << lost.consumer << lost.node << lost.token;
  }
  admin.must("UPDATE event_consumer SET claimed_until = clock_timestamp() - interval '1 ms'");
  EXPECT_EQ(add(queued(), {email}), std::nullopt);
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    EXPECT_FALSE(co_await retract_flow_mails(pool, claim, taken_back(queued()), 10));
    EXPECT_FALSE(co_await add_operator_mails(
        pool, claim, {.seq = 1, .type = "TxStuck", .subject = "tx/1", .at = {}, .data = "{}"}, {"ops@example.org"}));
  });
  EXPECT_EQ(count("email_send_logs"), 0);
  EXPECT_EQ(count("operator_email_logs"), 0);
}

// The lock keeps a takeover from passing a write that has passed its check.
TEST_F(FlowMails, hold_the_claim_until_they_are_committed) {
  const auto email = add_subscriber(1);
  interleaving::Theatre theatre(db.dsn());
  interleaving::Session writer(db.dsn(), "writer"), taker(db.dsn(), "taker");
  const pg::Params params =
      pg::Params::of(claim.consumer, claim.node, claim.token, "compound", 1, kContract, flow_id(1), 1, nullptr,
                     "waiting", 0, nullptr, "2026-01-02", wallet(1), nullptr, Ids{email}, 101);
  writer.must("BEGIN");
  writer.must(sql::kAddMails.sql, params);
  taker.send("SELECT FROM event_consumer WHERE consumer = 'mail/notifier' FOR UPDATE");
  EXPECT_FALSE(theatre.settled(taker));
  writer.must("COMMIT");
  EXPECT_TRUE(theatre.settled(taker));
  EXPECT_TRUE(taker.take().ok());
}

TEST_F(FlowMails, to_operators_are_one_for_each_address_and_event) {
  with_pool([&](pg::Pool& pool) -> awaitable<> {
    const OperatorEvent event{
        .seq = 5, .type = "TxStuck", .subject = "tx/1", .at = at("2026-01-02T00:00:00Z"), .data = "{}"};
    auto other = event;
    other.seq = 6;
    const std::vector<std::string> two{"a@example.org", "b@example.org"};
    EXPECT_EQ(co_await add_operator_mails(pool, claim, event, two), 2);
    EXPECT_EQ(co_await add_operator_mails(pool, claim, event, two), 0);
    EXPECT_EQ(co_await add_operator_mails(pool, claim, other, two), 2);
  });
}

}  // namespace
}  // namespace fencepost::notify
