#include <gtest/gtest.h>

#include "tests/support/interleaving.hpp"
#include "tests/support/postgres.hpp"

#include "doctor/transactions.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;
using test::Template;
using test::TestDatabase;

Finding check_of(const std::string& dsn, std::chrono::milliseconds limit = 10s) {
  Config config;
  config.database.dsn = Secret(dsn);
  config.database.connect_timeout = 2s;
  return check_transactions(config, limit).at(0);
}

constexpr auto kOne = R"(
  INSERT INTO managed_tx (tx_id, chain_id, signer, creation_seq, nonce, payload, payload_hash, gas_limit)
  VALUES ('01900000-0000-7000-8000-000000000001', 1, '0x1', 0, 0, '{}', '', 0))";

TEST(doctor_transactions, a_database_whose_tables_agree_passes) {
  const TestDatabase db(Template::kMigrated);
  EXPECT_EQ(check_of(db.dsn()), passed("transactions", "0 open, 0 waiting"));
  db.exec(kOne);
  db.exec(
      "INSERT INTO tx_open (chain_id, signer, nonce, tx_id, state, fencing_token) "
      "SELECT chain_id, signer, nonce, tx_id, 'ALLOCATED', 1 FROM managed_tx");
  EXPECT_EQ(check_of(db.dsn()), passed("transactions", "1 open, 0 waiting"));
}

TEST(doctor_transactions, a_transaction_that_is_nowhere_fails_with_its_id) {
  const TestDatabase db(Template::kMigrated);
  db.exec(kOne);
  const auto finding = check_of(db.dsn());
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find("neither waiting, open nor ended: 1 (01900000-0000-7000-8000-000000000001)"),
            std::string::npos)
      << finding.detail;
}

TEST(doctor_transactions, a_signer_that_waits_for_an_operator_fails_with_the_reason) {
  const TestDatabase db(Template::kMigrated);
  Config config;
  config.database.dsn = Secret(db.dsn());
  config.database.connect_timeout = 2s;
  EXPECT_EQ(check_transactions(config, 10s).size(), 1U);
  db.exec(
      "INSERT INTO signer_lease (chain_id, signer, owner_node, fencing_token, expires_at) "
      "SELECT 1, '0x' || lpad(i::text, 40, '0'), 'a', 1, now() FROM generate_series(1, 2) AS i");
  db.exec(
      "INSERT INTO signer_nonce_cursor (chain_id, signer, next_nonce, needs_reconcile, reconcile_reason, gap_nonce) "
      "SELECT chain_id, signer, 9, true, r.reason, r.nonce FROM signer_lease "
      "JOIN (VALUES ('1', 'undone', 7), ('2', NULL, NULL)) AS r(last, reason, nonce) ON right(signer, 1) = r.last");
  const auto finding = check_transactions(config, 10s).back();
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find("1 on chain 1: undone at nonce 7; 0x"), std::string::npos) << finding.detail;
  EXPECT_NE(finding.detail.find("2 on chain 1: chain_ahead"), std::string::npos) << finding.detail;
  EXPECT_NE(finding.fix.find("resend"), std::string::npos) << finding.fix;
}

TEST(doctor_transactions, a_database_that_is_not_migrated_is_not_checked) {
  const TestDatabase db;
  const auto finding = check_of(db.dsn());
  EXPECT_EQ(finding.status, Status::kWarn);
  EXPECT_NE(finding.detail.find("migrations are not applied"), std::string::npos) << finding.detail;
}

TEST(doctor_transactions, a_check_that_is_cut_off_is_a_warning) {
  const TestDatabase db(Template::kMigrated);
  interleaving::Session holder(db.dsn(), "holder");
  holder.must("BEGIN");
  holder.must("LOCK TABLE tx_ended IN ACCESS EXCLUSIVE MODE");
  const auto finding = check_of(db.dsn(), 100ms);
  EXPECT_EQ(finding.status, Status::kWarn);
  EXPECT_NE(finding.detail.find("took too long"), std::string::npos) << finding.detail;
}

}  // namespace
}  // namespace fencepost::doctor
