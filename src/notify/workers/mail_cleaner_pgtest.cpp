#include "notify/mail_node_test_support.hpp"
#include "notify/workers/mail_cleaner.hpp"

namespace fencepost::notify {
namespace {

// Batches of three rows, and a retention of ten days.
class MailCleaning : public NotifyTest {
 protected:
  std::int64_t clean() {
    return node_.run([this] { return cleaner_.clean(); });
  }
  // A mail about flow `flow` to the address; `corrects`: the id of the mail that it takes back.
  std::int64_t add_mail(std::int64_t email_id, int flow, int age_days, std::string_view status,
                        std::optional<std::int64_t> corrects = {}) {
    return admin.value<std::int64_t>(
        "INSERT INTO email_send_logs (email_id, flow_id, timelock_standard, chain_id, contract_address, generation, "
        "status_to, kind, retraction, changed_at, initiator_address, send_status, corrects, created_at) "
        "VALUES ($1, $2, 'compound', 1, $3, 1, 'waiting', $4, 0, now(), 'x', $5, $6, now() - $7 * interval '1 day') "
        "RETURNING id",
        pg::Params::of(email_id, flow_id(flow), kContract, corrects ? "correction" : "change", status, corrects,
                       age_days));
  }
  void add_report(int event, int age_days, std::string_view status) {
    admin.must(
        "INSERT INTO operator_email_logs (email, event_id, event_type, event_subject, event_at, event_data, "
        "send_status, created_at) VALUES ('ops@example.org', $1, 'TxStuck', 'tx/1', now(), '{}', $2, "
        "now() - $3 * interval '1 day')",
        pg::Params::of(event, status, age_days));
  }
  void make_addresses_old() { admin.must("UPDATE emails SET created_at = now() - interval '3 days'"); }

  MailNode node_{db.dsn(), mail_options()};
  MailCleaner cleaner_{node_.runtime.executor(0), node_.database, std::chrono::days(10), node_.metrics, 3};
};

TEST_F(MailCleaning, removes_mails_with_an_outcome_after_the_retention) {
  const auto email = add_subscriber(1);
  int flow = 0;
  // More rows that stay than fit into a batch come first.
  for (int i = 0; i < 7; ++i) add_mail(email, ++flow, 20, i % 2 == 0 ? "pending" : "failed");
  for (int i = 0; i < 12; ++i) add_mail(email, ++flow, 11, std::array{"success", "dead", "suppressed"}[i % 3]);
  for (int i = 0; i < 5; ++i) add_mail(email, ++flow, 9, "success");
  EXPECT_EQ(clean(), 12);
  EXPECT_EQ(count("email_send_logs"), 12);
  EXPECT_EQ(count("email_send_logs WHERE created_at < now() - interval '10 days' AND send_status NOT IN "
                  "('pending', 'failed')"),
            0);
  EXPECT_EQ(clean(), 0);
}

TEST_F(MailCleaning, removes_a_correction_before_the_mail_that_it_corrects) {
  const auto email = add_subscriber(1);
  const auto first = add_mail(email, 1, 20, "success"), second = add_mail(email, 2, 20, "success");
  add_mail(email, 1, 19, "success", first);
  add_mail(email, 2, 5, "success", second);
  EXPECT_EQ(clean(), 1);
  EXPECT_EQ(mails(), "success|change|0 success|change|0 success|correction|0");
  EXPECT_EQ(clean(), 1);
  EXPECT_EQ(mails(), "success|change|0 success|correction|0") << "the young correction and its mail stay together";
  EXPECT_EQ(clean(), 0);
}

TEST_F(MailCleaning, removes_old_reports_codes_and_requests) {
  for (int i = 0; i < 5; ++i) add_report(i, 11, i == 0 ? "failed" : "success");
  add_report(9, 9, "success");
  const auto mine = add_address(add_user(1), "a@example.org");
  admin.must(
      "INSERT INTO email_verification_codes (user_email_id, code_hash, expires_at, created_at) "
      "SELECT $1, sha256('x'), now(), now() - n * interval '12 hours' FROM generate_series(7, 0, -1) AS n",
      pg::Params::of(mine));
  admin.must(
      "INSERT INTO email_code_request (user_id, email_id, at) SELECT user_id, email_id, now() - n * interval '12 "
      "hours' "
      "FROM user_emails, generate_series(0, 7) AS n");
  clean();
  EXPECT_EQ(count("operator_email_logs"), 2);
  EXPECT_EQ(count("email_verification_codes"), 4);
  EXPECT_EQ(count("email_code_request"), 4);
}

TEST_F(MailCleaning, removes_addresses_that_nothing_refers_to) {
  const auto user = add_user(1);
  add_address(user, "used@example.org");
  for (const auto* email : {"mailed@example.org", "asked@example.org", "free@example.org", "also-free@example.org"}) {
    admin.must("INSERT INTO emails (email) VALUES ($1)", pg::Params::of(email));
  }
  add_mail(email_id("mailed@example.org"), 1, 1, "success");
  admin.must("INSERT INTO email_code_request (user_id, email_id) VALUES ($1, $2)",
             pg::Params::of(user, email_id("asked@example.org")));
  EXPECT_EQ(clean(), 0) << "addresses of today";
  make_addresses_old();
  EXPECT_EQ(clean(), 2);
  EXPECT_EQ(admin.value<std::string>("SELECT string_agg(split_part(email, '@', 1), ' ' ORDER BY id) FROM emails"),
            "used mailed asked");
}

TEST_F(MailCleaning, skips_rows_that_another_session_holds) {
  const auto email = add_subscriber(1);
  for (int flow = 1; flow <= 4; ++flow) add_mail(email, flow, 20, "success");
  interleaving::Session other(db.dsn(), "other");
  other.must("BEGIN");
  other.must("SELECT FROM email_send_logs WHERE flow_id = $1 FOR UPDATE", pg::Params::of(flow_id(2)));
  EXPECT_EQ(clean(), 3);
  other.must("COMMIT");
  EXPECT_EQ(clean(), 1);
}

}  // namespace
}  // namespace fencepost::notify
