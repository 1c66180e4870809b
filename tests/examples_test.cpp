// The programs of examples/, as a stranger runs them, against a `fencepost up`.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/base64.hpp"
#include "outbox/webhook/signature.hpp"
#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/process.hpp"
#include "tests/support/running_up.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/tx_cluster.hpp"
#include "tests/support/typescript_client.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;
using testing::HasSubstr;

class Examples : public testing::Test {
 protected:
  Examples() {
    install_client(up_.path(""));
    for (const auto* name : {"payouts.mjs", "webhook_receiver.mjs", "economy.py", "payouts.csv"}) {
      fs::copy_file(source_dir() / "examples" / name, up_.path(name));
    }
  }
  std::string sql(const std::string& query) const { return exec_sql(up_.dsn(), query); }
  // What the chain answers.
  json::value chain(const std::string& method, json::array params) const {
    const json::object call{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}};
    return ask({"POST", up_.rpc_url(), "", json::serialize(call)}).json().at("result");
  }
  std::string wei_of(const std::string& address) const {
    const auto balance = chain("eth_getBalance", {address, "latest"});
    return std::to_string(std::stoull(std::string(balance.as_string()), nullptr, 16));
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(up_.path(name)) << text; }

  RunningUp up_{{"FENCEPOST_WEBHOOKS_RETRY_INITIAL=50ms", "FENCEPOST_WEBHOOKS_RETRY_CAP=500ms"}};
};

// --- payouts ----------------------------------------------------------------------------------------------------

class Payouts : public Examples {
 protected:
  static constexpr int kPayouts = 40;

  Payouts() {
    std::string csv = "id,to,wei\n";
    for (int i = 1; i <= kPayouts; ++i) csv += fmt::format("i-{},{},{}\n", i, recipient(static_cast<unsigned>(i)), i);
    write("many.csv", csv);
  }
  RunningProgram start(const std::string& file) const { return start(file, up_.url()); }
  RunningProgram start(const std::string& file, const std::string& url) const {
    return {{"node", up_.path("payouts.mjs"), signer(0), up_.path(file)},
            up_.path("payouts.out"),
            {"FENCEPOST_URL=" + url, "FENCEPOST_API_KEY=" + up_.key()}};
  }
  static std::size_t count(const std::string& text, const std::string& word) {
    std::size_t found = 0;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
    return found;
  }
  // Kills the program when it has printed `word` so many times since the start.
  void kill_after(const std::string& word, std::size_t times) {
    fs::remove(up_.path("payouts.out"));
    auto program = start("many.csv");
    ASSERT_TRUE(eventually([&] { return count(program.output(), word) >= times; }, 60s)) << program.output();
    EXPECT_TRUE(program.running()) << "it ended before it could be killed: " << program.output();
    program.signal(SIGKILL);
  }
  void expect_each_paid_once() const {
    EXPECT_EQ(sql("SELECT count(*) FROM managed_tx"), std::to_string(kPayouts));
    for (int i = 1; i <= kPayouts; ++i) EXPECT_EQ(wei_of(recipient(static_cast<unsigned>(i))), std::to_string(i));
  }
};

TEST_F(Payouts, killed_again_and_again_it_makes_each_payment_once) {
  chain("evm_setIntervalMining", {0});  // nothing ends before the program is killed
  kill_after(" accepted", 1);
  kill_after(" accepted", 17);
  kill_after(" accepted", kPayouts);
  // `up` has 16 in flight. These become final, and the others get no block.
  const auto sent = [&] { return sql("SELECT count(DISTINCT subject) FROM event WHERE type = 'TxSubmitted'"); };
  ASSERT_TRUE(eventually([&] { return sent() == "16"; })) << sent();
  chain("anvil_mine", {5});
  kill_after(" paid", 3);
  chain("evm_setIntervalMining", {1});

  fs::remove(up_.path("payouts.out"));
  auto last = start("many.csv");
  EXPECT_TRUE(last.wait().success()) << last.output();
  EXPECT_THAT(last.output(), HasSubstr("40 of 40 paid"));
  EXPECT_EQ(count(last.output(), " paid\n"), kPayouts + 1U) << last.output();
  expect_each_paid_once();

  auto again = start("many.csv");
  EXPECT_TRUE(again.wait().success()) << again.output();
  expect_each_paid_once();
}

// The worst moment: the transaction exists, and the program dies without having heard of it.
TEST_F(Payouts, killed_before_it_has_an_answer_it_makes_each_payment_once) {
  const auto url = up_.url();
  TcpProxy proxy("127.0.0.1", static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  proxy.delay(0ms, 50ms);  // so that it has not ended when the test looks
  auto first = start("many.csv", fmt::format("http://127.0.0.1:{}", proxy.port()));
  ASSERT_TRUE(eventually([&] { return count(first.output(), " accepted") >= 5; })) << first.output();
  proxy.half_open(Direction::kToClient);
  const auto stored = [&] { return std::stoul(sql("SELECT count(*) FROM managed_tx")); };
  ASSERT_TRUE(eventually([&] { return stored() > count(first.output(), " accepted"); })) << first.output();
  first.signal(SIGKILL);

  auto second = start("many.csv");
  EXPECT_TRUE(second.wait().success()) << second.output();
  EXPECT_THAT(second.output(), HasSubstr("40 of 40 paid"));
  expect_each_paid_once();
}

TEST_F(Payouts, what_is_refused_or_fails_is_named_and_the_rest_is_paid) {
  write("bad.json", json::serialize(json::array{
                        {{"id", "good"}, {"to", recipient(1)}, {"wei", "7"}},
                        {{"id", "mistyped"}, {"to", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92267"}, {"wei", "1"}},
                        {{"id", "too-much"}, {"to", recipient(2)}, {"wei", "1" + std::string(30, '0')}}}));
  auto first = start("bad.json");
  EXPECT_EQ(first.wait().code, 1);
  EXPECT_THAT(first.output(), HasSubstr("good paid\n"));
  EXPECT_THAT(first.output(), HasSubstr("mistyped refused: bad_checksum: "));
  EXPECT_THAT(first.output(), HasSubstr("too-much refused: insufficient_funds: "));
  EXPECT_THAT(first.output(), HasSubstr("1 of 3 paid\n"));

  // The same id for another payout is no new payout.
  write("changed.json", json::serialize(json::array{{{"id", "good"}, {"to", recipient(1)}, {"wei", "8"}}}));
  auto changed = start("changed.json");
  EXPECT_EQ(changed.wait().code, 1);
  EXPECT_THAT(changed.output(), HasSubstr("good refused: request_conflict: "));
  write("twice.csv", "id,to,wei\na," + recipient(1) + ",1\na," + recipient(1) + ",1\n");
  auto twice = start("twice.csv");
  EXPECT_NE(twice.wait().code, 0);
  EXPECT_THAT(twice.output(), HasSubstr("the id a is there twice"));
  EXPECT_EQ(wei_of(recipient(1)), "7");
}

TEST_F(Payouts, the_file_beside_the_example_is_paid) {
  auto program = start("payouts.csv");
  EXPECT_TRUE(program.wait().success()) << program.output();
  EXPECT_THAT(program.output(), HasSubstr("3 of 3 paid\n"));
  EXPECT_EQ(wei_of("0x000000000000000000000000000000000000a003"), "3000000000000000");
}

// --- webhooks ---------------------------------------------------------------------------------------------------

class WebhookReceiver : public Examples {
 protected:
  WebhookReceiver() {
    const auto made = ask({"POST", up_.url() + "/api/v1/webhooks", up_.key(),
                           json::serialize(json::object{{"url", url()}, {"types", {"TxConfirmed", "TxAccepted"}}})});
    EXPECT_EQ(made.status, 201U) << made.body;
    id_ = made.json().at("id").as_string();
    secret_ = made.json().at("secret").as_string();
  }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/", port_); }
  void start() {
    receiver_.emplace(std::vector<std::string>{"node", up_.path("webhook_receiver.mjs"), up_.path("inbox.jsonl")},
                      up_.path("receiver.out"),
                      std::vector{"FENCEPOST_WEBHOOK_SECRET=" + secret_, fmt::format("PORT={}", port_)});
    ASSERT_TRUE(eventually([&] { return ask({.url = url()}).status != 0; })) << receiver_->output();
  }
  void pay(int count) {
    for (int i = 0; i < count; ++i) {
      const auto body = transfer(signer(0), fmt::format("pay-{}", paid_++), 1);
      ASSERT_EQ(ask({"POST", up_.url() + "/api/v1/tx", up_.key(), json::serialize(body)}).status, 202U);
    }
  }
  std::vector<std::string> inbox() const {
    std::vector<std::string> ids;
    std::istringstream lines(read_file(up_.path("inbox.jsonl")));
    for (std::string line; std::getline(lines, line);) ids.emplace_back(json::parse(line).at("id").as_string());
    return ids;
  }
  std::set<std::string> sent() const {
    std::istringstream in(
        sql("SELECT string_agg(seq::text, ' ') FROM event WHERE type IN ('TxConfirmed', 'TxAccepted')"));
    return {std::istream_iterator<std::string>(in), {}};
  }
  bool all_confirmed() const {
    return eventually(
        [&] { return sql("SELECT count(*) FROM event WHERE type = 'TxConfirmed'") == std::to_string(paid_); }, 60s);
  }
  // A request as Fencepost signs it.
  unsigned deliver(const std::string& body, std::chrono::seconds age = 0s, const std::string& secret = {}) const {
    const auto key = from_base64((secret.empty() ? secret_ : secret).substr(6));
    outbox::WebhookKeys keys;
    keys.push_back({Secret::take(std::string(*key))});
    const auto now = std::chrono::system_clock::now().time_since_epoch() - age;
    const auto timestamp = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    const auto signature = outbox::webhook_signature(keys, {}, "w_1", timestamp, body);
    return ask({.method = "POST",
                .url = url(),
                .body = body,
                .headers = {{"webhook-id", "w_1"},
                            {"webhook-timestamp", std::to_string(timestamp)},
                            {"webhook-signature", signature}}})
        .status;
  }

  std::uint16_t port_ = free_port();
  std::string id_, secret_;
  int paid_ = 0;
  std::optional<RunningProgram> receiver_;
};

TEST_F(WebhookReceiver, killed_and_restarted_it_handles_each_event_once) {
  start();
  pay(10);
  ASSERT_TRUE(eventually([&] { return inbox().size() >= 5; })) << receiver_->output();
  receiver_->signal(SIGKILL);
  pay(10);
  // A crash in the middle of a write.
  std::ofstream(up_.path("inbox.jsonl"), std::ios::app) << R"({"specversion":"1.0","id":"77)";
  start();
  ASSERT_TRUE(all_confirmed());
  ASSERT_TRUE(eventually([&] { return inbox().size() >= sent().size(); }, 60s)) << receiver_->output();
  const auto handled = inbox();
  EXPECT_EQ(std::set(handled.begin(), handled.end()), sent());
  EXPECT_EQ(handled.size(), sent().size()) << "an event was handled twice";
  EXPECT_TRUE(receiver_->signal(SIGTERM).success()) << receiver_->output();
}

TEST_F(WebhookReceiver, an_event_that_comes_again_is_acknowledged_and_not_handled_again) {
  start();
  const std::string event = R"({"specversion":"1.0","id":"900001","type":"TxConfirmed","subject":"tx/1","data":{}})";
  EXPECT_EQ(deliver(event), 204U);
  EXPECT_EQ(deliver(event), 204U);
  EXPECT_EQ(deliver("[" + event + R"(,{"id":"900002","type":"TxConfirmed","subject":"tx/1","data":{}}])"), 204U);
  EXPECT_EQ(inbox(), (std::vector<std::string>{"900001", "900002"}));
  receiver_->signal(SIGKILL);
  start();
  EXPECT_EQ(deliver(event), 204U);
  EXPECT_EQ(inbox().size(), 2U);
}

TEST_F(WebhookReceiver, what_fencepost_did_not_just_sign_is_refused) {
  start();
  const std::string event = R"({"id":"900001","type":"TxConfirmed","subject":"tx/1","data":{}})";
  EXPECT_EQ(ask({.method = "POST", .url = url(), .body = event}).status, 400U);
  EXPECT_EQ(deliver(event, 301s), 400U);
  EXPECT_EQ(deliver(event, 0s, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), 400U);
  EXPECT_EQ(read_file(up_.path("inbox.jsonl")), "");
  EXPECT_THAT(receiver_->output(), HasSubstr("refused: too_old"));
  const auto test = ask({"POST", up_.url() + "/api/v1/webhooks/" + id_ + "/test", up_.key()});
  EXPECT_EQ(test.json().at("delivered"), true) << test.body;
  EXPECT_THAT(read_file(up_.path("inbox.jsonl")), HasSubstr(R"("type":"WebhookTest")"));
}

// --- the economy ------------------------------------------------------------------------------------------------

TEST_F(Examples, the_economy_says_what_was_refused_and_why) {
  const auto done = run_command({"python3", up_.path("economy.py")}, up_.environment());
  EXPECT_TRUE(done.status.success()) << done.out << done.err;
  for (const auto* line : {
           "500 a day, 300 s between two payments\n",
           "Ann gets 1000 (prize) and has 1000\n",
           "Ann pays Ben 200 for rent: completed\nAnn pays Ben 200 for rent: completed\n",
           "Ann pays Cho 50 for dinner: refused, cooldown. The next payment may be made at 20",
           "Ben pays Cho 300 for a horse: refused, insufficient_balance. The account has 200 and needs 300.\n",
           "Dan pays Ann 600 for a house: refused, daily_limit. 0 of 500 are used up today.\n",
           "Dan pays Dan 1 for nothing: refused, invalid_transfer. ",
           "Ann pays Cho 50 for dinner: completed\nDan pays Ann 600 for a house: completed\n",
           "Ben gets 150 (harvest) and has 350\nThe horse: completed\n",
           "Ann has 1350\nBen has 50\nCho has 350\nDan has 200\n",
           "The audit of all guilds: every point is where it should be\n",
       }) {
    EXPECT_THAT(done.out, HasSubstr(line));
  }
}

TEST_F(Examples, the_economy_run_again_for_the_same_guild_pays_nothing_twice) {
  const auto run = [&] { return run_command({"python3", up_.path("economy.py"), "77"}, up_.environment()); };
  const auto first = run();
  EXPECT_TRUE(first.status.success()) << first.out << first.err;
  const auto balances = [](const std::string& out) { return out.substr(std::min(out.size(), out.find("Ann has"))); };
  EXPECT_THAT(balances(first.out), HasSubstr("Dan has 200"));
  const auto second = run();
  EXPECT_TRUE(second.status.success()) << second.out << second.err;
  EXPECT_EQ(balances(second.out), balances(first.out));
}

}  // namespace
}  // namespace fencepost::test
