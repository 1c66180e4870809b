// People, addresses, subscriptions and mails, for tests of notify that need PostgreSQL.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "notify/store/outgoing_store.hpp"
#include "notify/store/recipient_store.hpp"
#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::notify {

using namespace std::chrono_literals;

inline const std::string kContract = "0x00000000000000000000000000000000000c0de0";
inline const std::string kOtherContract = "0x00000000000000000000000000000000000c0de1";

inline std::string wallet(int number) {
  return fmt::format("0x{:040x}", number);
}
inline std::string flow_id(int number) {
  return fmt::format("0x{:064x}", number);
}
inline TimePoint at(std::string_view text) {
  return parse_rfc3339(text).value();
}

// What a subscription asks for; the usual one is that of a person who follows the flows of the own wallet.
struct Asked {
  std::string standard = "compound";
  std::int64_t chain_id = 1;
  std::string contract = kContract;
  std::string notify_on = R"(["waiting", "ready"])";
  std::string scope = "initiator";
  std::optional<std::string> filters = {};
  std::int64_t since_block = 100;
  std::string since = "2026-01-01T00:00:00Z";
  bool active = true;
};

// Flow `flow` is queued by wallet(1) in block 101, after the usual subscription was made.
inline FlowChange queued(int flow = 1) {
  return {
      .ref = {.standard = "compound", .chain_id = 1, .contract = kContract, .flow_id = flow_id(flow), .generation = 1},
      .from = {},
      .to = "waiting",
      .tx_hash = flow_id(9),
      .block = 101,
      .changed_at = at("2026-01-02T00:00:00Z"),
      .initiator = wallet(1),
      .via = {}};
}
// A reorg takes back what `change` announced.
inline FlowChange taken_back(FlowChange change) {
  change.retracted = true;
  ++change.retraction;
  return change;
}
// The same change happens again after it was taken back.
inline FlowChange again(FlowChange change) {
  change.retracted = false;
  return change;
}

inline std::vector<std::int64_t> email_ids(const std::vector<Candidate>& candidates) {
  std::vector<std::int64_t> out;
  for (const auto& candidate : candidates) out.push_back(candidate.email_id);
  std::ranges::sort(out);
  return out;
}

// At most so many of each kind.
inline ClaimLimits each(std::size_t count) {
  return {.codes = count, .flows = count, .operators = count};
}

inline MailEnd end_of(const MailRow& row, SendDecision decision) {
  return {.kind = row.kind, .id = row.id, .token = row.token, .decision = std::move(decision)};
}
inline SendDecision sent() {
  return {.status = SendStatus::kSuccess, .error = ""};
}
inline SendDecision failed(std::chrono::milliseconds delay = 0ms, bool maybe = false) {
  return {.status = SendStatus::kFailed, .delay = delay, .maybe_sent = maybe, .error = "451 later"};
}
inline SendDecision dead(bool unknown_address = false) {
  return {.status = SendStatus::kDead, .unknown_address = unknown_address, .error = "550 no"};
}
inline SendDecision given_back() {
  return {.status = SendStatus::kPending, .error = ""};
}

class NotifyTest : public ::testing::Test {
 protected:
  NotifyTest() {
    admin.must(
        "INSERT INTO event_consumer (consumer, position, owner_node, claim_token, claimed_until) "
        "VALUES ($1, 0, $2, $3, clock_timestamp() + interval '1 hour')",
        pg::Params::of(claim.consumer, claim.node, claim.token));
  }

  // The person whose wallet is wallet(number).
  std::int64_t add_user(int number, std::string_view language = "en") {
    return admin.value<std::int64_t>("INSERT INTO users (wallet_address, language) VALUES ($1, $2) RETURNING id",
                                     pg::Params::of(wallet(number), language));
  }
  // Returns the id in user_emails.
  std::int64_t add_address(std::int64_t user_id, std::string_view email, bool verified = true,
                           std::optional<std::string> remark = {}) {
    return admin.value<std::int64_t>(
        "WITH e AS (INSERT INTO emails (email) VALUES ($2) ON CONFLICT (email) DO UPDATE SET email = $2 RETURNING id) "
        "INSERT INTO user_emails (user_id, email_id, is_verified, remark) SELECT $1, id, $3, $4 FROM e RETURNING id",
        pg::Params::of(user_id, email, verified, remark));
  }
  std::int64_t subscribe(std::int64_t user_email_id, const Asked& asked = {}) {
    return admin.value<std::int64_t>(
        "INSERT INTO user_email_subscriptions (user_email_id, timelock_standard, chain_id, contract_address, "
        "notify_on, "
        "scope, notify_filters, since_block, since_timestamp, is_active) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
        pg::Params::of(user_email_id, asked.standard, asked.chain_id, asked.contract, asked.notify_on, asked.scope,
                       asked.filters, asked.since_block, asked.since, asked.active));
  }
  // A person with one verified address and one subscription. Returns the id of the address in emails.
  std::int64_t add_subscriber(int number, const Asked& asked = {}) {
    const auto email = fmt::format("p{}@example.org", number);
    subscribe(add_address(add_user(number), email), asked);
    return email_id(email);
  }
  std::int64_t email_id(std::string_view email) {
    return admin.value<std::int64_t>("SELECT id FROM emails WHERE email = $1", pg::Params::of(email));
  }

  // "pending|change|0" for each mail about flows, in the order of ids: status, kind, retraction.
  std::string mails() {
    return admin.value<std::string>(
        "SELECT coalesce(string_agg(concat_ws('|', send_status, kind, retraction), ' ' ORDER BY id), '') "
        "FROM email_send_logs");
  }
  // An expression over the one row of a table.
  std::string only(std::string_view expression, std::string_view table = "email_send_logs") {
    return admin.must(fmt::format("SELECT ({})::text FROM {}", expression, table)).one().get<std::string>(0);
  }
  std::int64_t count(std::string_view from_where) {
    return admin.value<std::int64_t>(fmt::format("SELECT count(*) FROM {}", from_where));
  }
  // The claims of all mails end now, as if their nodes had died long ago.
  void expire_claims() {
    for (const auto* table : {"email_verification_codes", "email_send_logs", "operator_email_logs"}) {
      admin.must(
          fmt::format("UPDATE {} SET claimed_until = clock_timestamp() - interval '1 s', "
                      "next_attempt_at = clock_timestamp() - interval '1 s' WHERE claimed_until IS NOT NULL",
                      table));
    }
  }

  template <class Body>
  void with_pool(Body body) {
    test::with_pool(db.dsn(), {}, std::move(body));
  }

  test::TestDatabase db{test::Template::kMigrated};
  interleaving::Session admin{db.dsn(), "admin"};
  // What the consumer that adds mails holds.
  const outbox::Claim claim{.consumer = "mail/notifier", .node = "node-a", .token = 7};
};

}  // namespace fencepost::notify
