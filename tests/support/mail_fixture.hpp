// For tests of mail as a whole: nodes, real timelocks, people with verified addresses.
#pragma once

#include <string>
#include <vector>

#include "tests/support/mailbox.hpp"
#include "tests/support/person.hpp"
#include "tests/support/timelock_fixture.hpp"

namespace fencepost::test {

class MailTest : public Timelocks {
 protected:
  // `email`: more keys of the section `email`, as YAML in one line each.
  void start_mail(const std::vector<std::string>& email = {}, std::size_t nodes = 1, std::int64_t confirmations = 0) {
    TxClusterOptions options;
    options.settings.more = fmt::format("email:\n  transport: file\n  directory: {}\n  from: fencepost@example.org\n",
                                        box_.directory().string());
    for (const auto& line : email) options.settings.more += "  " + line + "\n";
    start(confirmations, nodes, std::move(options));
  }
  Person person(std::size_t account) { return {*cluster_, signer_key(account)}; }

  // Adds the address without verifying it. Returns its id.
  static std::string add(const Person& person, const std::string& email, const std::string& remark = "") {
    boost::json::object body{{"email", email}};
    if (!remark.empty()) body["remark"] = remark;
    const auto answer = person.post("/api/v1/me/emails", body);
    if (answer.status != 201) throw Exception(internal("add_email", answer.body));
    return std::string(answer.json().at("id").as_string());
  }
  static Answer verify(const Person& person, const std::string& id, const std::string& code) {
    return person.post("/api/v1/me/emails/" + id + "/verify", {{"code", code}});
  }
  // `codes`: how many codes the address has got by then.
  std::string add_verified(const Person& person, const std::string& email, const std::string& remark = "",
                           std::size_t codes = 1) const {
    const auto id = add(person, email, remark);
    const auto answer = verify(person, id, box_.code(email, codes));
    if (answer.status != 200) throw Exception(internal("verify_email", answer.body));
    return id;
  }
  static Answer subscribe(const Person& person, const std::string& email_id, const std::string& contract,
                          const std::string& standard, const std::vector<std::string>& notify_on,
                          boost::json::object more = {}) {
    more["emailId"] = email_id;
    more["standard"] = standard;
    more["chainId"] = 31337;
    more["contractAddress"] = contract;
    more["notifyOn"] = boost::json::array(notify_on.begin(), notify_on.end());
    return person.post("/api/v1/me/subscriptions", more);
  }

  // Which changes were mailed to the address, in their order: "waiting ready -ready".
  std::string told(const std::string& email) const {
    return cluster_->sql(fmt::format(
        "SELECT coalesce(string_agg(CASE kind WHEN 'correction' THEN '-' ELSE '' END || status_to, ' ' ORDER BY l.id), "
        "'') FROM email_send_logs AS l JOIN emails AS e ON e.id = l.email_id WHERE e.email = '{}' AND "
        "send_status = 'success'",
        email));
  }
  bool is_told(const std::string& email, const std::string& wanted) const {
    return eventually([&] { return told(email) == wanted; });
  }
  // Whether every event of the log was handled by the notifier, and every mail has an outcome.
  bool settled() const {
    return cluster_->sql_becomes(
        "SELECT (SELECT max(seq) FROM outbox) <= (SELECT position FROM event_consumer WHERE consumer = "
        "'mail/notifier') "
        "AND NOT EXISTS (SELECT FROM email_send_logs WHERE send_status IN ('pending', 'failed'))",
        "t");
  }

  Mailbox box_;
};

}  // namespace fencepost::test
