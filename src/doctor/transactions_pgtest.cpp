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
