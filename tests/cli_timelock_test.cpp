// `fencepost timelock …` as people and scripts use it, with real contracts on a real chain.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/terminal.hpp"
#include "tests/support/timelocks.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto kUnknown = "0x00000000000000000000000000000000000000aa";

class CliTimelock : public ::testing::Test {
 protected:
  void SetUp() override {
    TxClusterOptions options;
    options.settings.more = "scanner:\n  confirmations: 0\n";
    options.anvil = {"--no-mining"};
    cluster_.emplace(std::move(options));
    chain_.emplace(*cluster_);
    cluster_->mine(1);
  }

  std::vector<std::string> env() {
    return {"FENCEPOST_URL=" + cluster_->node(0).url(""), "FENCEPOST_API_KEY=" + cluster_->key(), "TZ=UTC0"};
  }
  Finished run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"timelock"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return fencepost(all, env());
  }
  std::string out_of(const std::vector<std::string>& arguments) {
    const auto done = run(arguments);
    EXPECT_EQ(done.status.code, 0) << done.out << done.err;
    return done.out;
  }
  json::value json_of(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return json::parse(out_of(arguments));
  }

  std::optional<TxCluster> cluster_;
  std::optional<TimelockChain> chain_;
};

TEST_F(CliTimelock, a_contract_is_imported_shown_listed_and_removed) {
  EXPECT_EQ(out_of({"list"}), "no timelocks are watched\n");
  const CompoundTimelock timelock(*chain_, signer(0));
  const auto& address = timelock.address();
  const auto imported = out_of({"import", address, "--chain", "31337", "--remark", "treasury", "--wait"});
  EXPECT_THAT(imported, StartsWith("watching " + address + " on chain 31337, compound\n"));
  EXPECT_THAT(imported, ContainsRegex("history complete, blocks [0-9]+ to [0-9]+\n$"));

  const auto shown = out_of({"show", address});
  EXPECT_THAT(shown, HasSubstr("standard       compound\n"));
  EXPECT_THAT(shown, HasSubstr("delay          172800 s (2d)\n"));
  EXPECT_THAT(shown, HasSubstr("remark         treasury\n"));
  EXPECT_THAT(shown, HasSubstr("history        complete, "));
  EXPECT_EQ(json_of({"show", address, "--chain", "31337"}).at("history").at("complete"), true);
  EXPECT_THAT(out_of({"list"}),
              ContainsRegex("\n" + address + "  31337 +compound +172800 s \\(2d\\) +complete .*treasury"));
  EXPECT_EQ(json_of({"list", "--chain", "1"}).at("items").as_array().size(), 0U);

  const auto again = run({"import", address, "--chain", "31337"});
  EXPECT_EQ(again.status.code, 1);
  EXPECT_THAT(again.err, HasSubstr("timelock_exists"));
  EXPECT_EQ(json_of({"remove", address}).at("removed"), true);
  EXPECT_EQ(run({"show", address}).status.code, 5);
  EXPECT_EQ(run({"remove", address, "--chain", "31337"}).status.code, 5);
}

TEST_F(CliTimelock, a_terminal_shows_a_bar_until_the_history_is_complete) {
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  cluster_->mine(50);
  Terminal terminal({fencepost_program(), "timelock", "import", timelock.address(), "--chain", "31337", "--wait"},
                    env());
  EXPECT_TRUE(terminal.shows("[##############################] 100%")) << terminal.screen();
  EXPECT_EQ(terminal.end(), 0);
}

TEST_F(CliTimelock, flows_are_listed_shown_and_put_into_a_calendar) {
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  const auto& address = timelock.address();
  out_of({"import", address, "--chain", "31337", "--wait"});
  EXPECT_EQ(out_of({"flows"}), "no flows\n");
  EXPECT_EQ(out_of({"flows", "--upcoming"}), "no flow is waiting or ready\n");
  timelock.schedule({recipient(1)}, salt(1), 1'000);
  timelock.schedule({recipient(2)}, salt(2), 500'000);
  timelock.schedule({recipient(3)}, salt(3), 100);
  chain_->pass(200);
  timelock.execute({recipient(3)}, salt(3));
  const auto done = OpenZeppelinTimelock::id({recipient(3)}, salt(3));
  const auto soon = OpenZeppelinTimelock::id({recipient(1)}, salt(1));
  const auto later = OpenZeppelinTimelock::id({recipient(2)}, salt(2));
  ASSERT_TRUE(cluster_->sql_becomes("SELECT status FROM timelock_transaction_flows WHERE flow_id = '" + done + "'",
                                    "executed"));

  for (const unsigned short width : {80, 60}) {
    for (const auto& arguments : std::vector<std::vector<std::string>>{{"list"}, {"flows"}, {"flows", "--upcoming"}}) {
      std::vector<std::string> command{fencepost_program(), "timelock"};
      command.insert(command.end(), arguments.begin(), arguments.end());
      Terminal terminal(command, env(), width);
      EXPECT_EQ(terminal.end(), 0);
      EXPECT_LE(terminal.widest_line(), width) << terminal.screen();
    }
  }
  EXPECT_EQ(json_of({"flows"}).at("items").as_array().size(), 3U);
  EXPECT_THAT(out_of({"flows", "--status", "executed"}), ContainsRegex("\nexecuted +openzeppelin +31337 .*" + done));
  EXPECT_EQ(json_of({"flows", "--status", "waiting,ready", "--contract", address}).at("items").as_array().size(), 2U);
  EXPECT_EQ(json_of({"flows", "--initiator", signer(0)}).at("items").as_array().size(), 3U);
  EXPECT_EQ(json_of({"flows", "--initiator", signer(1)}).at("items").as_array().size(), 0U);
  EXPECT_THAT(out_of({"flows", "--limit", "1"}),
              HasSubstr("there are more: raise --limit, give --all, or go on with "));

  const auto calendar = out_of({"flows", "--upcoming"});
  EXPECT_THAT(calendar,
              ContainsRegex("^[A-Z][a-z][a-z] 20[-0-9]+\n  [:0-9]+ \\+00:00  becomes ready  waiting .*" + soon));
  EXPECT_LT(calendar.find(soon), calendar.find(later)) << calendar;
  EXPECT_EQ(calendar.find(done), std::string::npos) << calendar;

  const auto shown = out_of({"flow", done});
  EXPECT_THAT(shown, ContainsRegex("\nstatus +executed\n"));
  EXPECT_THAT(shown, HasSubstr("target"));
  EXPECT_THAT(shown, HasSubstr(recipient(3)));
  EXPECT_EQ(json_of({"flow", soon, "--chain", "31337", "--contract", address}).at("status"), "waiting");
}

TEST_F(CliTimelock, what_was_ready_long_ago_does_not_crowd_out_what_comes_next) {
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  out_of({"import", timelock.address(), "--chain", "31337", "--wait"});
  std::vector<std::string> ids;
  const auto schedule = [&](std::uint64_t number, std::int64_t delay) {
    timelock.schedule({recipient(1)}, salt(number), delay);
    ids.push_back(OpenZeppelinTimelock::id({recipient(1)}, salt(number)));
  };
  for (const std::uint64_t number : {0, 1, 2}) {
    schedule(number, 100);  // never executed: ready for ever
    chain_->pass(200);
  }
  schedule(3, 900'000);
  schedule(4, 500'000);
  ASSERT_TRUE(cluster_->sql_becomes(
      "SELECT count(*) FILTER (WHERE status = 'ready') || ' ' || count(*) FROM timelock_transaction_flows", "3 5"));
  const auto shown = [&](const char* limit) {
    std::vector<std::string> out;
    for (const auto& flow : json_of({"flows", "--upcoming", "--limit", limit}).at("items").as_array()) {
      out.emplace_back(flow.at("flowId").as_string());
    }
    return out;
  };
  EXPECT_EQ(shown("1"), (std::vector{ids[4]}));
  EXPECT_EQ(shown("3"), (std::vector{ids[4], ids[3], ids[2]}));
  EXPECT_EQ(shown("50"), (std::vector{ids[4], ids[3], ids[2], ids[1], ids[0]}));
  for (const auto* limit : {"1", "2", "3", "4"}) {
    EXPECT_THAT(out_of({"flows", "--upcoming", "--limit", limit}), HasSubstr("there are more: raise --limit\n"))
        << limit;
    const auto for_scripts = run({"flows", "--upcoming", "--limit", limit, "--json"});
    EXPECT_TRUE(json::parse(for_scripts.out).at("nextCursor").is_null()) << "no cursor leads on in this order";
    EXPECT_EQ(for_scripts.err, "{\"notice\":\"there are more: raise --limit\"}\n") << limit;
  }
  EXPECT_THAT(out_of({"flows", "--upcoming", "--limit", "5"}), Not(HasSubstr("there are more")));
}

TEST_F(CliTimelock, events_and_webhooks_are_chosen_by_contract) {
  const OpenZeppelinTimelock wanted(*chain_, signer(0), 100);
  const OpenZeppelinTimelock other(*chain_, signer(0), 100);
  for (const auto* timelock : {&wanted, &other}) {
    out_of({"import", timelock->address(), "--chain", "31337", "--wait"});
    timelock->schedule({recipient(1)}, salt(1), 1'000);
  }
  ASSERT_TRUE(cluster_->sql_becomes("SELECT count(*) FROM outbox WHERE type = 'FlowStatusChanged'", "2"));
  // What was committed is shown once it is settled.
  Finished events;
  EXPECT_TRUE(eventually([&] {
    events = fencepost({"events", "--after", "0", "--no-follow", "--json", "--contract", wanted.address()}, env());
    return events.out.contains("FlowStatusChanged");
  })) << events.out
      << events.err;
  EXPECT_THAT(events.out, HasSubstr(wanted.address()));
  EXPECT_THAT(events.out, Not(HasSubstr(other.address())));
  const auto key = fencepost({"apikey", "create", "--dsn", cluster_->dsn(), "--json", "--label", "hooks", "--scope",
                              "webhooks:write", "--scope", "timelock:read"});
  auto with_key = env();
  with_key[1] = "FENCEPOST_API_KEY=" + std::string(json::parse(key.out).at("key").as_string());
  const auto webhook =
      fencepost({"webhook", "create", "https://example.com/hook", "--contract", wanted.address()}, with_key);
  EXPECT_THAT(webhook.out, ContainsRegex("contracts +" + wanted.address())) << webhook.err;
}

TEST_F(CliTimelock, each_failure_has_its_message_and_exit_code) {
  const struct {
    int exit_code;
    std::string message;  // on stderr
    std::vector<std::string> arguments;
  } cases[] = {
      {2, "address is required", {"import"}},
      {2, "--chain is required", {"import", kUnknown}},
      {2, "--standard", {"import", kUnknown, "--chain", "31337", "--standard", "gnosis"}},
      {2, "--wait", {"import", kUnknown, "--chain", "31337", "--timeout", "5s"}},
      {2, "expected a duration", {"import", kUnknown, "--chain", "31337", "--wait", "--timeout", "soon"}},
      {2, "unknown_chain", {"import", kUnknown, "--chain", "5"}},
      {1, "not_a_contract", {"import", kUnknown, "--chain", "31337"}},
      {5, "is not watched on any chain", {"show", kUnknown}},
      {5, "no_such_timelock", {"show", kUnknown, "--chain", "31337"}},
      {5, "There is no flow", {"flow", "0x" + std::string(64, '1')}},
      {2, "--upcoming", {"flows", "--upcoming", "--status", "ready"}},
      {2, "parameter: status", {"flows", "--status", "lost"}},
      {1, "bad_api_key", {"list", "--api-key", "fp_wrong"}},
      {6, "http://127.0.0.1:1", {"list", "--url", "http://127.0.0.1:1"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("fencepost timelock {}", fmt::join(c.arguments, " ")));
    const auto failed = run(c.arguments);
    EXPECT_EQ(failed.status.code, c.exit_code) << failed.out << failed.err;
    EXPECT_THAT(failed.err, HasSubstr(c.message));
    EXPECT_THAT(failed.out, IsEmpty());
  }
}

}  // namespace
}  // namespace fencepost::test
