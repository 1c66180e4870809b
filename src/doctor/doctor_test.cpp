#include "doctor/doctor.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "doctor/email.hpp"

namespace fencepost::doctor {
namespace {

TEST(doctor, a_line_is_status_check_detail_and_fix) {
  struct Case {
    Finding finding;
    std::string_view line;
  };
  const std::vector<Case> cases{
      {passed("config", "fencepost.yaml"), "ok    config     fencepost.yaml"},
      {passed("chain dev", "block 120"), "ok    chain dev  block 120"},
      {warned("database", "fsync is off", "turn it on"), "warn  database   fsync is off → turn it on"},
      {failed("email", "connection refused", "start it"), "FAIL  email      connection refused → start it"},
      {failed("config", "x.yaml:3: http.port: bad", ""), "FAIL  config     x.yaml:3: http.port: bad"},
  };
  for (const auto& [finding, line] : cases) EXPECT_EQ(render_line(finding, 9), line);
}

TEST(doctor, a_check_with_a_name_of_several_bytes_per_letter_stays_aligned) {
  EXPECT_EQ(render_line(passed("chain Zoë", "x"), 10), "ok    chain Zoë   x");
}

TEST(doctor, json_has_every_field_of_every_finding) {
  const Findings findings{passed("config", "a"), warned("database", "b \"quoted\"", "c"), failed("email", "d", "e")};
  EXPECT_EQ(boost::json::parse(render_json(findings)), boost::json::parse(R"({"nextCursor": null, "items": [
    {"check": "config",   "status": "ok",   "detail": "a",              "fix": null},
    {"check": "database", "status": "warn", "detail": "b \"quoted\"",   "fix": "c"},
    {"check": "email",    "status": "fail", "detail": "d",              "fix": "e"}]})"));
  EXPECT_EQ(render_json({}), R"({"items":[],"nextCursor":null})");
}

TEST(doctor, warnings_do_not_fail) {
  EXPECT_FALSE(any_failed({}));
  EXPECT_FALSE(any_failed(Findings{passed("a", ""), warned("b", "", "")}));
  EXPECT_TRUE(any_failed(Findings{passed("a", ""), failed("b", "", ""), passed("c", "")}));
}

TEST(doctor, text_from_outside_becomes_one_harmless_line) {
  EXPECT_EQ(one_line("refused\n\tIs the server running?\n"), "refused Is the server running?");
  EXPECT_EQ(one_line("\x1b[31mred\x07 \xff"), "[31mred \xEF\xBF\xBD");
  EXPECT_LE(one_line(std::string(100'000, 'x')).size(), 1000U);
}

TEST(doctor, each_problem_of_the_configuration_has_its_line) {
  const auto config = load_config({.file = ConfigFile{"f.yaml", "http:\n  port: 99999\nnonsense: 1\n"}});
  ASSERT_FALSE(config);
  const auto findings = assess_config(config, "f.yaml");
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_TRUE(findings[0].detail.starts_with("f.yaml:2: http.port: ")) << findings[0].detail;
  EXPECT_TRUE(findings[1].detail.starts_with("f.yaml:3: nonsense: ")) << findings[1].detail;
}

TEST(doctor, a_file_that_is_not_there_fails) {
  const auto findings = assess_config(fail(read_config_file("/nowhere/f.yaml").error()), "/nowhere/f.yaml");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_EQ(findings[0].detail, "cannot read \"/nowhere/f.yaml\": No such file or directory");
  EXPECT_EQ(findings[0].fix, "give --config a file that exists and can be read");
}

TEST(doctor, the_fix_for_an_up_that_does_not_run_is_to_start_it) {
  const auto findings = assess_config(fail(not_found("not_up", "there is no /nowhere/up.json")), "");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fix, "start 'fencepost up' with that --data-dir, or give --config or --dsn instead");
}

TEST(doctor, a_configuration_without_a_database_fails_and_suggests_up) {
  const auto findings = assess_config(load_config({}), "");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].status, Status::kFail);
  EXPECT_NE(findings[0].fix.find("fencepost up"), std::string::npos);
}

TEST(doctor, a_good_configuration_is_named_by_its_file) {
  const auto config = load_config({.environment = {{"FENCEPOST_DATABASE_DSN", "postgresql://u:geheim@h/d"}}});
  EXPECT_EQ(assess_config(config, "f.yaml"), Findings{passed("config", "f.yaml")});
  EXPECT_EQ(assess_config(config, ""), Findings{passed("config", "defaults and environment, no file")});
}

struct EmailCase {
  SmtpOutcome outcome;
  bool with_login;
  Status status;
  std::string_view detail;
  std::string_view in_fix;
};

TEST(doctor, mail_is_judged_by_how_far_the_probe_came) {
  const std::vector<EmailCase> cases{
      {{.encrypted = true, .authenticated = true}, true, Status::kOk, "smtp://mail:25, TLS, logged in as me", ""},
      {{.encrypted = true}, false, Status::kOk, "smtp://mail:25, TLS", ""},
      {{}, false, Status::kOk, "smtp://mail:25, not encrypted", ""},
      {{.authenticated = true},
       true,
       Status::kWarn,
       "smtp://mail:25, not encrypted, logged in as me: the password is sent unencrypted",
       "TLS"},
      {{.encrypted = true}, true, Status::kFail, "smtp://mail:25 offers no login, but email.username is set", "587"},
      {{.failure = SmtpFailure::kUnreachable, .reason = "Connection refused"},
       false,
       Status::kFail,
       "smtp://mail:25: Connection refused",
       "running"},
      {{.failure = SmtpFailure::kUnknownHost, .reason = "no such host"},
       false,
       Status::kFail,
       "smtp://mail:25: no such host",
       "resolve it"},
      {{.failure = SmtpFailure::kTimeout, .reason = "x"},
       false,
       Status::kFail,
       "smtp://mail:25: no answer within 10s",
       "smtps"},
      {{.failure = SmtpFailure::kTls, .reason = "self-signed certificate"},
       false,
       Status::kFail,
       "smtp://mail:25: self-signed certificate",
       "certificate"},
      {{.failure = SmtpFailure::kAuthentication, .reason = "535 5.7.8 no\r\n"},
       true,
       Status::kFail,
       "smtp://mail:25: 535 5.7.8 no",
       "email.password"},
      {{.failure = SmtpFailure::kRejected, .reason = "554 go away"},
       false,
       Status::kFail,
       "smtp://mail:25: 554 go away",
       "accepts mail from this machine"},
  };
  for (const auto& [outcome, with_login, status, detail, in_fix] : cases) {
    notify::EmailOptions email{.smtp_url = "smtp://mail:25", .from = "a@b.c"};
    if (with_login) email.username = "me";
    if (with_login) email.password = Secret("geheim");
    const auto finding = assess_email(email, outcome);
    EXPECT_EQ(finding.status, status) << detail;
    EXPECT_EQ(finding.detail, detail);
    EXPECT_NE(finding.fix.find(in_fix), std::string::npos) << detail << " → " << finding.fix;
    EXPECT_EQ(finding.fix.empty(), status == Status::kOk);
  }
}

TEST(doctor, no_mail_server_is_fine) {
  EXPECT_EQ(check_email({}).status, Status::kOk);
}

}  // namespace
}  // namespace fencepost::doctor
