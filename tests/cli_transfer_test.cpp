// `fencepost transfer …` as people and scripts use it, with a real node and a real PostgreSQL.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr auto kUnknownId = "01890000-0000-7000-8000-000000000000";

class CliTransfer : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(config_) << "database:\n  dsn: \"" << db_.dsn() << "\"\nhttp:\n  port: " << port_ << "\n";
    ASSERT_EQ(fencepost({"migrate", "--config", config_.string()}).status.code, 0);
    const auto made =
        fencepost({"apikey", "create", "--config", config_.string(), "--json", "--label", "t", "--scope", "admin"});
    ASSERT_EQ(made.status.code, 0) << made.err;
    key_ = json::parse(made.out).at("key").as_string();
    node_.emplace(std::vector<std::string>{"serve", "--config", config_.string()}, dir_ / "output");
    ASSERT_TRUE(eventually([&] { return ask({.url = url() + "/readyz"}).status == 200; }, 30s)) << node_->output();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  std::vector<std::string> api() const { return {"FENCEPOST_URL=" + url(), "FENCEPOST_API_KEY=" + key_}; }

  Finished run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"transfer"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return fencepost(all, api());
  }
  // Returns the output of a command that must succeed.
  std::string out_of(const std::vector<std::string>& arguments) {
    const auto done = run(arguments);
    EXPECT_EQ(done.status.code, 0) << done.out << done.err;
    return done.out;
  }
  json::value json_of(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return json::parse(out_of(arguments));
  }

  void mint(const std::string& member, const std::string& amount) {
    out_of({"mint", "--guild", "7", "--member", member, "--amount", amount, "--reason", "prize"});
  }

  TestDatabase db_;
  TempDir dir_{"cli-transfer"};
  std::filesystem::path config_ = dir_ / "fencepost.yaml";
  std::uint16_t port_ = free_port();
  std::string key_;
  std::optional<RunningFencepost> node_;
};

// Returns the value after the label `name` in text output; empty if there is no such label.
std::string fact(const std::string& shown, const std::string& name) {
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "  ")) return line.substr(line.find_first_not_of(' ', name.size()));
  }
  return "";
}

std::vector<std::string> send(const std::string& amount, const std::string& mode, std::vector<std::string> more = {}) {
  std::vector<std::string> all{"send", "--guild", "7", "--from", "1", "--to", "2", "--amount", amount, "--mode", mode};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(CliTransfer, mint_send_statement_and_burn_show_the_right_balances) {
  const auto minted = run({"mint", "--guild", "7", "--member", "1", "--amount", "100", "--reason", "prize"});
  ASSERT_EQ(minted.status.code, 0) << minted.err;
  EXPECT_EQ(fact(minted.out, "balance"), "100");
  EXPECT_THAT(minted.err, StartsWith("key ")) << "the caller needs the key to retry after a lost answer";

  const auto sent = run(send("40", "sync", {"--key", "rent-1", "--reason", "rent"}));
  ASSERT_EQ(sent.status.code, 0) << sent.err;
  EXPECT_THAT(sent.err, IsEmpty()) << "the caller gave the key and knows it";
  EXPECT_EQ(fact(sent.out, "status"), "completed");
  EXPECT_EQ(fact(sent.out, "balance of payer"), "60");
  EXPECT_EQ(fact(sent.out, "balance of payee"), "40");
  EXPECT_EQ(out_of(send("40", "sync", {"--key", "rent-1", "--reason", "rent"})), sent.out)
      << "the retry must return the first transfer";
  const auto ledger_id = fact(sent.out, "ledger id");
  EXPECT_EQ(fact(out_of({"get", fact(sent.out, "transfer")}), "ledger id"), ledger_id);

  const auto statement = out_of({"statement", "--guild", "7", "--member", "1"});
  EXPECT_THAT(statement, ContainsRegex("\n" + ledger_id + " +20.*  transfer +-40 +60 +2 .* rent\n"));
  EXPECT_EQ(std::ranges::count(statement, '\n'), 3);
  EXPECT_THAT(out_of({"statement", "--guild", "7", "--member", "1", "--limit", "1"}), HasSubstr("there are more"));
  EXPECT_EQ(json_of({"statement", "--guild", "7", "--member", "0"}).at("items").as_array().size(), 1U)
      << "member 0 is the source of minted money";
  const auto csv = run({"statement", "--guild", "7", "--member", "1", "--csv", "--limit", "1"});
  EXPECT_THAT(csv.out, StartsWith("ledgerId,createdAt,kind,"));
  EXPECT_THAT(csv.out, HasSubstr(",transfer,-40,60,2,"));
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 2);
  EXPECT_THAT(csv.err, HasSubstr("there are more"));
  EXPECT_THAT(run({"statement", "--guild", "7", "--member", "1", "--csv"}).err, IsEmpty());

  const auto burnt = out_of({"burn", "--guild", "7", "--member", "2", "--amount", "15", "--reason", "fine"});
  EXPECT_EQ(fact(burnt, "balance"), "25");
}

TEST_F(CliTransfer, accounts_and_settings_are_shown_and_changed) {
  const auto defaults = out_of({"settings", "--guild", "7"});
  EXPECT_EQ(fact(defaults, "daily limit"), "500");
  EXPECT_EQ(fact(defaults, "cooldown"), "5m");
  mint("1", "1000");
  out_of(send("100", "sync"));
  const auto payer = out_of({"balance", "--guild", "7", "--member", "1"});
  EXPECT_EQ(fact(payer, "balance"), "900");
  EXPECT_EQ(fact(payer, "used today"), "100");
  EXPECT_THAT(fact(payer, "cooldown until"), ContainsRegex("^20..-..-.. ..:..:.. UTC$"));
  EXPECT_EQ(json_of({"balance", "--guild", "7", "--member", "2"}).at("balance").as_string(), "100");

  const auto changed = out_of({"settings", "--guild", "7", "--cooldown", "0", "--daily-limit", "none", "--max-retries",
                               "3", "--reason", "trade"});
  EXPECT_EQ(fact(changed, "cooldown"), "0s");
  EXPECT_EQ(fact(changed, "daily limit"), "none");
  EXPECT_EQ(fact(changed, "max retries"), "3");
  EXPECT_EQ(json_of({"settings", "--guild", "7"}).at("cooldownSeconds").as_int64(), 0);
  out_of(send("600", "sync"));

  EXPECT_EQ(fact(out_of({"kind", "government", "--guild", "7", "--member", "3", "--reason", "the bank"}), "kind"),
            "government");
  EXPECT_EQ(fact(out_of({"balance", "--guild", "7", "--member", "3"}), "kind"), "government");
}

TEST_F(CliTransfer, metadata_is_stored_and_shown) {
  mint("1", "100");
  const auto sent = json_of(send("1", "sync", {"--metadata", R"({"order": 7})"}));
  const auto stored = json_of({"get", std::string(sent.at("transferId").as_string())});
  EXPECT_EQ(stored.at("metadata").at("order").as_int64(), 7);
  EXPECT_EQ(fact(out_of({"get", std::string(sent.at("transferId").as_string())}), "metadata"), R"({"order":7})");
  const auto refused = run(send("1", "sync", {"--metadata", "order 7"}));
  EXPECT_EQ(refused.status.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--metadata: expected a JSON object"));
}

TEST_F(CliTransfer, a_whole_statement_is_read_page_by_page) {
  for (int i = 0; i < 3; ++i) mint("1", "10");
  const auto page = json_of({"statement", "--guild", "7", "--member", "1", "--limit", "2"});
  const std::string cursor(page.at("nextCursor").as_string());
  EXPECT_EQ(json_of({"statement", "--guild", "7", "--member", "1", "--cursor", cursor}).at("items").as_array().size(),
            1U);
  EXPECT_EQ(json_of({"statement", "--guild", "7", "--member", "1", "--all"}).at("items").as_array().size(), 3U);
  const auto part = run({"statement", "--guild", "7", "--member", "1", "--csv", "--limit", "2"});
  EXPECT_THAT(part.err, HasSubstr("--cursor " + cursor));
  const auto rest = out_of({"statement", "--guild", "7", "--member", "1", "--csv", "--cursor", cursor});
  EXPECT_EQ(std::ranges::count(rest, '\n'), 2);
  const auto whole = out_of({"statement", "--guild", "7", "--member", "1", "--csv", "--all"});
  EXPECT_EQ(std::ranges::count(whole, '\n'), 4);
  EXPECT_EQ(whole, part.out + rest.substr(rest.find('\n') + 1)) << "one line of headers";
}

TEST_F(CliTransfer, a_refused_transfer_reports_its_code_and_details) {
  mint("1", "100");
  const auto poor = run(send("150", "sync"));
  EXPECT_EQ(poor.status.code, 1);
  EXPECT_THAT(poor.out, IsEmpty());
  EXPECT_THAT(poor.err, HasSubstr("  code: insufficient_balance\n"));
  EXPECT_THAT(poor.err, HasSubstr("  balance: 100\n"));
  EXPECT_THAT(poor.err, HasSubstr("  required: 150\n"));
  out_of(send("1", "sync", {"--key", "k"}));
  const auto soon = run(send("1", "sync"));
  EXPECT_EQ(soon.status.code, 1);
  EXPECT_THAT(soon.err, ContainsRegex("  code: cooldown\n(.*\n)*  until: 20"));
  const auto other = run(send("2", "sync", {"--key", "k"}));
  EXPECT_EQ(other.status.code, 1);
  EXPECT_THAT(other.err, HasSubstr("idempotency_conflict"));
}

TEST_F(CliTransfer, a_pool_transfer_is_listed_watched_and_cancelled) {
  EXPECT_EQ(out_of({"list", "--guild", "7"}), "no transfers\n");
  const auto waiting = out_of(send("40", "pool", {"--expires-hours", "2", "--reason", "rent"}));
  const auto id = fact(waiting, "transfer");
  EXPECT_EQ(fact(waiting, "status"), "checking");
  EXPECT_THAT(fact(out_of({"get", id}), "checks"), HasSubstr("balance failed"));
  EXPECT_THAT(out_of({"list", "--guild", "7"}),
              ContainsRegex("^TRANSFER .*\n" + id + "  checking +1 +2 +40 .* rent\n$"));
  EXPECT_EQ(json_of({"list", "--guild", "7", "--status", "checking"}).at("items").as_array().size(), 1U);
  EXPECT_EQ(out_of({"list", "--guild", "7", "--status", "completed"}), "no transfers\n");
  const auto early = run({"watch", id, "--timeout", "100ms"});
  EXPECT_EQ(early.status.code, 4) << early.err;
  EXPECT_THAT(early.out, HasSubstr("  checking   balance failed, "));
  EXPECT_THAT(early.err, ContainsRegex("the transfer goes on. Look again:\n.* transfer watch " + id + "\n"));

  RunningFencepost watching({"transfer", "watch", id, "--json"}, dir_ / "watch", api());
  ASSERT_TRUE(eventually([&] { return watching.output().contains("\"checking\""); })) << watching.output();
  watching.interrupt();
  const auto seen = watching.output();
  const auto interrupted = json::parse(seen.substr(seen.rfind('\n', seen.size() - 2) + 1));
  EXPECT_EQ(interrupted.at("code").as_string(), "interrupted") << seen;
  EXPECT_EQ(interrupted.at("exitCode").as_int64(), 130);
  EXPECT_THAT(std::string(interrupted.at("message").as_string()),
              ContainsRegex("^Stopped watching; the transfer goes on. Look again:\n.* transfer watch " + id + "$"));

  EXPECT_EQ(fact(out_of({"cancel", id}), "status"), "rejected");
  const auto watched = run({"watch", id});
  EXPECT_EQ(watched.status.code, 3);
  EXPECT_THAT(watched.out, HasSubstr("  rejected   transfer_cancelled\n"));
  const auto for_scripts = run({"watch", id, "--json"});
  EXPECT_EQ(for_scripts.status.code, 3);
  EXPECT_EQ(json::parse(for_scripts.out).at("deniedReason").as_string(), "transfer_cancelled");
  EXPECT_THAT(for_scripts.err, IsEmpty()) << "a rejection is a result, not an error of the command";
  const auto again = run({"cancel", id});
  EXPECT_EQ(again.status.code, 1);
  EXPECT_THAT(again.err, HasSubstr("not_cancellable"));

  mint("1", "100");
  const auto done = run(send("40", "pool", {"--wait", "--timeout", "30s"}));
  EXPECT_EQ(done.status.code, 0) << done.out << done.err;
  EXPECT_THAT(done.out, ContainsRegex("^transfer [-0-9a-f]+\n(.*\n)*.*  completed  ledger id [0-9]+\n$"));
}

TEST_F(CliTransfer, an_operator_fails_a_transfer_that_cannot_be_completed) {
  mint("1", "100");
  db_.exec("ALTER TABLE economy.transactions ADD CONSTRAINT not_thirteen CHECK (amount <> 13)");
  const auto id = fact(out_of(send("13", "pool", {"--max-retries", "-1"})), "transfer");
  const auto failed = out_of({"fail", id, "--reason", "cannot be completed"});
  EXPECT_EQ(fact(failed, "status"), "rejected");
  EXPECT_THAT(failed, HasSubstr("transfer_failed"));
  EXPECT_EQ(db_.exec("SELECT reason FROM economy.operations WHERE action = 'fail'"), "cannot be completed");
  EXPECT_EQ(db_.exec("SELECT max_retries FROM economy.pending_transfers"), "-1");
  const auto again = run({"fail", id, "--reason", "again"});
  EXPECT_EQ(again.status.code, 1);
  EXPECT_THAT(again.err, HasSubstr("not_failable"));
}

TEST_F(CliTransfer, the_exit_code_of_audit_says_whether_the_books_balance) {
  mint("1", "100");
  const auto holds = run({"audit"});
  EXPECT_EQ(holds.status.code, 0) << holds.out << holds.err;
  EXPECT_THAT(holds.out, HasSubstr("ok     supply_balances\n"));
  EXPECT_THAT(holds.out, testing::Not(HasSubstr("WRONG")));
  db_.exec("UPDATE economy.accounts SET balance = balance + 5 WHERE guild_id = 7 AND member_id = 1");
  const auto broken = run({"audit"});
  EXPECT_EQ(broken.status.code, 3);
  EXPECT_THAT(broken.out, ContainsRegex("WRONG  balances_are_their_entries  1, such as guild 7, member 1: "));
  const auto for_scripts = run({"audit", "--json"});
  EXPECT_EQ(for_scripts.status.code, 3);
  EXPECT_EQ(json::parse(for_scripts.out).at("ok"), false);
}

TEST_F(CliTransfer, each_failure_has_its_message_and_exit_code) {
  const struct {
    int exit_code;
    std::string message;  // on stderr
    std::vector<std::string> arguments;
  } cases[] = {
      {2, "--guild is required", {"send"}},
      {2, "a change needs --reason", {"settings", "--guild", "7", "--cooldown", "5m"}},
      {2, "bad_cooldown", {"settings", "--guild", "7", "--cooldown", "soon", "--reason", "r", "--json"}},
      {2, "--daily-limit", {"settings", "--guild", "7", "--daily-limit", "-1", "--reason", "r"}},
      {2, "king not in", {"kind", "king", "--guild", "7", "--member", "1", "--reason", "r"}},
      {5, "no_such_account", {"balance", "--guild", "7", "--member", "9"}},
      {2, "expected a whole number from 1 to 9223372036854775807, got '0'", send("0", "sync")},
      {2, "got '-5'", send("-5", "sync")},
      {2, "got '1.5'", send("1.5", "sync")},
      {2, "got '010'", send("010", "sync")},
      {2, "got '9223372036854775808'", send("9223372036854775808", "sync")},
      {2, "--mode", send("1", "later")},
      {2, "--wait", send("1", "pool", {"--timeout", "5s"})},
      {2, "expected a duration", {"watch", kUnknownId, "--timeout", "soon"}},
      {2, "field: expiresHours", send("1", "sync", {"--expires-hours", "2"})},
      {2, "field: targetId", {"send", "--guild", "7", "--from", "1", "--to", "1", "--amount", "1"}},
      {2, "parameter: status", {"list", "--guild", "7", "--status", "lost"}},
      {2, "--reason is required", {"mint", "--guild", "7", "--member", "1", "--amount", "1"}},
      {2, "got '0'", {"mint", "--guild", "7", "--member", "0", "--amount", "1", "--reason", "r"}},
      {5, "no_such_transfer", {"get", kUnknownId}},
      {5, "no_such_transfer", {"watch", kUnknownId}},
      {5, "no_such_transfer", {"cancel", kUnknownId}},
      {5, "no_such_transfer", {"fail", kUnknownId, "--reason", "r"}},
      {2, "--reason is required", {"fail", kUnknownId}},
      {2, "field: maxRetries", send("1", "sync", {"--max-retries", "2"})},
      {2, "--max-retries", send("1", "pool", {"--max-retries", "-2"})},
      {5, "no_such_account", {"statement", "--guild", "7", "--member", "1"}},
      {5, "no_such_account", {"statement", "--guild", "7", "--member", "1", "--csv"}},
      {1, "bad_api_key", {"audit", "--api-key", "fp_wrong"}},
      {6, "http://127.0.0.1:1", {"audit", "--url", "http://127.0.0.1:1"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("fencepost transfer {}", fmt::join(c.arguments, " ")));
    const auto failed = run(c.arguments);
    EXPECT_EQ(failed.status.code, c.exit_code) << failed.out << failed.err;
    EXPECT_THAT(failed.err, HasSubstr(c.message));
    EXPECT_THAT(failed.out, IsEmpty());
  }
  EXPECT_EQ(db_.exec("SELECT count(*) FROM economy.transactions"), "0");
}

}  // namespace
}  // namespace fencepost::test
