// Checks the plans of the statements of mail. Plans are cached, and the first ones are made before there is data: each
// statement must walk along an index whatever the planner believes about the tables.
#include <gtest/gtest.h>

#include "notify/store/address_store.hpp"
#include "notify/store/cleanup_store.hpp"
#include "notify/store/mail_log_store.hpp"
#include "notify/store/outgoing_store.hpp"
#include "notify/store/recipient_store.hpp"
#include "notify/store/subscription_store.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/query_plan.hpp"

namespace fencepost::notify {
namespace {

// 5,000 people with two addresses and six subscriptions each, a tenth of these to all flows; 60,000 mails, nearly all
// of them sent; a code and a report for each person.
constexpr std::string_view kManyMails = R"(
  INSERT INTO users (wallet_address) SELECT '0x' || lpad(to_hex(n), 40, '0') FROM generate_series(1, 5000) AS n;
  INSERT INTO emails (email) SELECT 'p' || n || '@example.org' FROM generate_series(1, 10000) AS n;
  INSERT INTO user_emails (user_id, email_id, is_verified)
  SELECT (n - 1) / 2 + 1, n, true FROM generate_series(1, 10000) AS n;
  INSERT INTO user_email_subscriptions (user_email_id, timelock_standard, chain_id, contract_address, notify_on, scope,
                                        since_block, since_timestamp)
  SELECT ue.id, 'compound', 1, '0x' || lpad(to_hex((ue.id * 7 + c * 31) % 200), 40, '0'), '["waiting", "ready"]',
         CASE WHEN ue.id % 10 = 0 THEN 'all' ELSE 'initiator' END, 1, now()
    FROM user_emails AS ue, generate_series(1, 3) AS c;
  INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, status_to,
                               kind, retraction, changed_at, initiator_address, send_status)
  SELECT n % 10000 + 1, '0x' || lpad(to_hex(n / 20), 64, '0'), 'compound', 1,
         '0x' || lpad(to_hex(n / 20 % 200), 40, '0'), 1, 'waiting', 'change', 0, now(),
         '0x' || lpad(to_hex(n % 5000), 40, '0'),
         CASE WHEN n % 1000 = 0 THEN 'dead' WHEN n % 1000 = 1 THEN 'suppressed' WHEN n % 1000 = 2 THEN 'failed'
              WHEN n > 59900 THEN 'pending' ELSE 'success' END
    FROM generate_series(1, 60000) AS n;
  INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, status_to,
                               kind, retraction, changed_at, initiator_address, send_status, corrects)
  SELECT email_id, flow_id, timelock_standard, chain_id, contract_address, generation, status_to, 'correction', 1,
         changed_at, initiator_address, 'success', id
    FROM email_send_logs
   WHERE id % 20 = 0;
  INSERT INTO email_verification_codes (user_email_id, code_hash, expires_at, send_status)
  SELECT id, sha256(id::text::bytea), now(), CASE WHEN id % 100 = 0 THEN 'pending' ELSE 'success' END FROM user_emails;
  INSERT INTO email_code_request (user_id, email_id, at)
  SELECT user_id, email_id, now() - id * interval '10 s' FROM user_emails;
  INSERT INTO operator_email_logs (email, event_id, event_type, event_subject, event_at, event_data, send_status)
  SELECT 'ops@example.org', n, 'TxStuck', 'tx/1', now(), '{}', CASE WHEN n % 100 = 0 THEN 'pending' ELSE 'success' END
    FROM generate_series(1, 10000) AS n;
  ANALYZE)";

struct Expected {
  const pg::Statement& statement;
  std::vector<std::string> indexes;  // the plan must use each of them
};

const std::string kUsers = "users_pkey", kEmails = "emails_pkey", kMine = "user_emails_pkey";
const std::string kOfUser = "user_emails_user_id_email_id_key", kOfEmail = "idx_user_emails_email";
const std::string kMails = "email_send_logs_pkey",
                  kMailKey = "email_send_logs_flow_id_status_to_email_id_contract_address_key";
const std::string kCodes = "email_verification_codes_pkey", kCodesOfUser = "idx_email_verification_codes_user_email";
const std::string kSubscriptions = "user_email_subscriptions_user_email_id_chain_id_contract_ad_key";

std::vector<Expected> expected() {
  return {
      // for each event
      {sql::kByInitiator, {"users_wallet_address_key", kOfUser, kSubscriptions, kEmails}},
      {sql::kByContract, {"idx_user_email_subscriptions_all", kMine, "idx_emails_undeliverable", kSubscriptions}},
      {sql::kAddMails, {"event_consumer_pkey"}},
      {sql::kRetract, {"event_consumer_pkey", kMailKey, "idx_email_send_logs_corrects", kMails}},
      {sql::kAddOperatorMails, {"event_consumer_pkey"}},
      // each second, and for each mail
      {sql::kClaimCodes, {"idx_email_verification_codes_due", kCodes, kMine, kEmails, kUsers}},
      {sql::kClaimFlowMails, {"idx_email_send_logs_due", kMails, kEmails, kOfEmail, kSubscriptions, kUsers}},
      {sql::kClaimOperatorMails, {"idx_operator_email_logs_due", "operator_email_logs_pkey"}},
      {sql::kEndCodes, {kCodes, kMine, kEmails}},
      {sql::kEndFlowMails, {kMails, kEmails}},
      {sql::kEndOperatorMails, {"operator_email_logs_pkey"}},
      {sql::kBacklog, {"idx_email_verification_codes_due", "idx_email_send_logs_due", "idx_operator_email_logs_due"}},
      // each hour
      {sql::kRemoveFlowMails, {kMails, "idx_email_send_logs_corrects"}},
      {sql::kRemoveOperatorMails, {"operator_email_logs_pkey"}},
      {sql::kRemoveCodes, {kCodes}},
      {sql::kRemoveAddresses, {kEmails, kOfEmail, "idx_email_send_logs_email", "idx_email_code_request_email"}},
      // for people
      {sql::kListEmails, {kOfUser, kEmails}},
      {sql::kCodeRequests, {"idx_email_code_request_user"}},
      {sql::kVoidCodes, {kCodesOfUser}},
      {sql::kAddCode, {"idx_email_code_request_email"}},
      {sql::kForgetRequests, {"idx_email_code_request_at", "email_code_request_pkey"}},
      {sql::kTakeTry, {kCodes, kCodesOfUser}},
      {sql::kMarkVerified, {kCodesOfUser, kEmails}},
      {sql::kAddSubscription, {kOfUser, kSubscriptions}},
      {sql::kFindSubscription, {kSubscriptions, kEmails}},
      {sql::kListSubscriptions, {kOfUser, kEmails, kSubscriptions}},
      {sql::kChangeSubscription, {"user_email_subscriptions_pkey"}},
      {sql::kUnsubscribe, {kOfEmail, kSubscriptions}},
      // for operators
      {sql::kMailsNewest, {kMails, kEmails}},
      {sql::kMailsOfEmail, {"emails_email_key", "idx_email_send_logs_email", kEmails}},
      {sql::kMailsOfContracts, {"idx_email_send_logs_contract", kEmails}},
      {sql::kMailsWaiting, {"idx_email_send_logs_due", kEmails}},
      {sql::kMailsUnsent, {"idx_email_send_logs_unsent", kEmails}},
  };
}

// Reading all mails that wait is as good as it gets for a list of them.
bool may_read_whole(const pg::Statement& statement, std::string_view what) {
  return &statement == &sql::kMailsWaiting && what.ends_with("idx_email_send_logs_due");
}

struct Beginning {
  std::string name;
  std::string fill;
};

void PrintTo(const Beginning& beginning, std::ostream* out) {
  *out << beginning.name;
}

class MailPlans : public ::testing::TestWithParam<Beginning> {};

TEST_P(MailPlans, read_by_index) {
  const test::TestDatabase db(test::Template::kMigrated);
  if (!GetParam().fill.empty()) db.exec(GetParam().fill);
  interleaving::Session session(db.dsn(), "planner");
  session.must("SET plan_cache_mode = force_generic_plan");
  session.must("SET enable_seqscan = off");  // as Connector does
  for (const auto& [statement, indexes] : expected()) {
    SCOPED_TRACE(std::string(statement.name));
    const auto plan = test::plan_of(statement, session);
    for (const auto& what : plan.whole) {
      EXPECT_TRUE(may_read_whole(statement, what)) << "reads all of " << what << "\n" << plan.text;
    }
    for (const auto& index : indexes) EXPECT_TRUE(plan.indexes.contains(index)) << index << "\n" << plan.text;
  }
}

INSTANTIATE_TEST_SUITE_P(on, MailPlans,
                         ::testing::Values(Beginning{"empty_tables", ""},
                                           Beginning{"tables_analyzed_while_empty", "ANALYZE"},
                                           Beginning{"large_tables", std::string(kManyMails)}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fencepost::notify
