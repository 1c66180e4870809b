#include "doctor/transactions.hpp"

#include <gtest/gtest.h>

namespace fencepost::doctor {
namespace {

TransactionFacts with_faults(std::vector<tx::Fault> work, std::vector<tx::Fault> records = {}) {
  return {.work = {.open = 3, .waiting = 0, .faults = std::move(work)}, .records = std::move(records)};
}

TEST(doctor_transactions, tables_that_agree_are_ok) {
  EXPECT_EQ(assess_transactions({.work = {.open = 1204, .waiting = 10}}),
            passed("transactions", "1,204 open, 10 waiting"));
  EXPECT_EQ(assess_transactions({}).detail, "0 open, 0 waiting");
  EXPECT_EQ(assess_transactions({.work = {.open = 999, .waiting = 1234567}}).detail, "999 open, 1,234,567 waiting");
}

TEST(doctor_transactions, every_contradiction_is_a_failure_with_its_ids) {
  const auto finding = assess_transactions(with_faults({{"open and ended", 2, {"a", "b"}}}, {{"nowhere", 1, {"c"}}}));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_EQ(finding.detail,
            "3 open, 0 waiting; their tables contradict each other: open and ended: 2 (a, b); nowhere: 1 (c)");
  EXPECT_NE(finding.fix.find("report"), std::string::npos);
}

TEST(doctor_transactions, at_most_five_ids_are_named) {
  const auto finding =
      assess_transactions(with_faults({{"x", 1, {"a"}}, {"y", 2000, {"b", "c", "d", "e", "f"}}}, {{"z", 1, {"g"}}}));
  EXPECT_NE(finding.detail.find("x: 1 (a); y: 2,000 (b, c, d, e); z: 1"), std::string::npos) << finding.detail;
  EXPECT_EQ(finding.detail.find('g', finding.detail.find("z: 1")), std::string::npos) << finding.detail;
}

TEST(doctor_transactions, a_signer_that_no_live_node_can_serve_is_a_failure_with_its_reason) {
  EXPECT_EQ(assess_unled({}), Findings{});
  std::vector<tx::UnledSigner> unled{{.key = {10, "0xa"}, .reason = "no_key", .transactions = 1204},
                                     {.key = {137, "0xb"}, .reason = "chain_not_configured", .transactions = 1},
                                     {.key = {10, "0xc"}, .reason = "no_leader", .transactions = 2}};
  auto findings = assess_unled(unled);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_EQ(findings[0].detail, "chain 10, signer 0xa: 1,204 open, and no live node has the key (no_key)");
  EXPECT_EQ(findings[1].detail,
            "chain 137, signer 0xb: 1 open, and no live node has the chain configured (chain_not_configured)");
  EXPECT_EQ(findings[2].detail,
            "chain 10, signer 0xc: 2 open, and no node has taken the lease for over a minute (no_leader)");
  unled.resize(1'002, unled[0]);
  findings = assess_unled(unled);
  ASSERT_EQ(findings.size(), 11U);
  EXPECT_EQ(findings.back().detail, "992 more signers with 1,194,368 open that no live node can finish");
}

TEST(doctor_transactions, a_check_that_took_too_long_is_a_warning) {
  const auto part = assess_transactions({.work = {.open = 5, .waiting = 1}, .all_records = false});
  EXPECT_EQ(part.status, Status::kWarn);
  EXPECT_EQ(part.detail, "5 open, 1 waiting; the ended ones were not checked: reading them took too long");
  const auto none = assess_transactions({.all_work = false, .all_records = false});
  EXPECT_EQ(none.status, Status::kWarn);
  EXPECT_EQ(none.detail.find(" open, "), std::string::npos) << none.detail;  // no numbers that were not read
}

TEST(doctor_transactions, a_contradiction_is_a_failure_also_when_the_rest_was_not_checked) {
  auto facts = with_faults({{"open and ended", 1, {"a"}}});
  facts.all_records = false;
  const auto finding = assess_transactions(facts);
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_NE(finding.detail.find("the ended ones were not checked"), std::string::npos) << finding.detail;
}

}  // namespace
}  // namespace fencepost::doctor
