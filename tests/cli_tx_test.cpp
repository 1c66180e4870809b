// `fencepost tx …` and the operator's commands as people and scripts use them.
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/terminal.hpp"
#include "tests/support/tx_cluster.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr auto kUnknownId = "01890000-0000-7000-8000-000000000000";
// Anvil's first account with its checksum, and with one letter of the wrong case.
constexpr auto kWritten = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
constexpr auto kMistyped = "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266";

// Creates a contract whose constructor reverts with the reason "the shop is closed".
constexpr auto kRevertingCode =
    "0x6308c379a060e01b60005260206004526012602452717468652073686f7020697320636c6f73656460701b60445260646000fd";

std::vector<std::string> api_of(TxCluster& cluster, std::size_t node = 0) {
  return {"FENCEPOST_URL=" + cluster.node(node).url(""), "FENCEPOST_API_KEY=" + cluster.key()};
}

Finished run(TxCluster& cluster, std::vector<std::string> arguments) {
  return fencepost(std::move(arguments), api_of(cluster));
}

// Returns the output of a command that must succeed.
std::string out_of(TxCluster& cluster, std::vector<std::string> arguments) {
  const auto done = run(cluster, std::move(arguments));
  EXPECT_EQ(done.status.code, 0) << done.out << done.err;
  return done.out;
}

json::value json_of(TxCluster& cluster, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  return json::parse(out_of(cluster, std::move(arguments)));
}

std::vector<std::string> send(const std::string& request_id, const std::string& value = "1") {
  return {"tx",      "send", "--signer", kWritten, "--to",         recipient(),
          "--value", value,  "--gas",    "21000",  "--request-id", request_id};
}

std::string send_one(TxCluster& cluster, const std::string& request_id) {
  return std::string(json_of(cluster, send(request_id)).at("txId").as_string());
}

// Returns the rest of the line that begins with the label; empty if there is no such line.
std::string after_label(const std::string& text, const std::string& label) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(label)) return line.substr(std::min(line.size(), line.find_first_not_of(' ', label.size())));
  }
  return "";
}

// Returns the value of a field in text output.
std::string fact(const std::string& shown, const std::string& name) {
  return after_label(shown, name + "  ");
}

// Returns the error code printed on stderr.
std::string code_of(const Finished& failed) {
  return after_label(failed.err, "  code: ");
}

std::vector<std::string> with(std::vector<std::string> arguments, std::initializer_list<std::string> more) {
  arguments.insert(arguments.end(), more);
  return arguments;
}

TEST(cli_tx, a_transaction_is_sent_followed_and_looked_up) {
  TxCluster cluster;
  const auto sent = run(cluster, with(send("invoice 7", "1.5ether"), {"--wait", "confirmed", "--timeout", "60s"}));
  ASSERT_EQ(sent.status.code, 0) << sent.out << sent.err << cluster.describe();
  EXPECT_THAT(sent.err, IsEmpty()) << "the caller gave the request id and knows it";
  ASSERT_THAT(sent.out, StartsWith("transaction "));
  const auto id = sent.out.substr(12, 36);
  EXPECT_THAT(sent.out, ContainsRegex("\n..:..:..\\....  ALLOCATED .*node0.* #1\n"));
  EXPECT_THAT(sent.out, HasSubstr("TRACKING (mined)"));
  EXPECT_THAT(sent.out, ContainsRegex("  CONFIRMED .*\n$"));

  const auto hash = cluster.column(id, "tx_hash");
  const auto shown = out_of(cluster, {"tx", "get", id});
  EXPECT_EQ(fact(shown, "transaction"), id);
  EXPECT_EQ(fact(shown, "state"), "CONFIRMED");
  EXPECT_EQ(fact(shown, "request id"), "invoice 7");
  EXPECT_EQ(fact(shown, "signer"), signer(0));
  EXPECT_EQ(fact(shown, "nonce"), "0");
  EXPECT_EQ(fact(shown, "to"), recipient());
  EXPECT_EQ(fact(shown, "value"), "1.5 ether");
  EXPECT_EQ(fact(shown, "hash"), hash);
  EXPECT_THAT(fact(shown, "confirmed"), ContainsRegex("^20..-..-.. ..:..:.. UTC$"));
  EXPECT_THAT(shown, ContainsRegex("ATTEMPT +KIND +HASH +OUTCOME"));
  EXPECT_THAT(shown, ContainsRegex("1 +original +" + hash + " +accepted"));
  EXPECT_EQ(json_of(cluster, {"tx", "get", id}).at("txHash").as_string(), hash);

  const auto history = out_of(cluster, {"tx", "history", id});
  EXPECT_THAT(history, StartsWith("AT (UTC)"));
  EXPECT_THAT(history, ContainsRegex("\n20..-..-.. ..:..:..\\.... +ALLOCATED +node0[^ ]* +1 "));
  EXPECT_THAT(history, ContainsRegex(" TRACKING \\(mined\\) +CONFIRMED |TRACKING +CONFIRMED "));
  EXPECT_GE(json_of(cluster, {"tx", "history", id}).at("items").as_array().size(), 4U);
}

TEST(cli_tx, a_retry_with_the_same_request_id_sends_nothing_twice) {
  TxCluster cluster;
  const auto id = send_one(cluster, "once");
  EXPECT_EQ(send_one(cluster, "once"), id);
  const auto other = run(cluster, send("once", "2"));
  EXPECT_EQ(other.status.code, 1);
  EXPECT_EQ(code_of(other), "request_conflict");
  EXPECT_THAT(other.out, IsEmpty());

  const auto unnamed = run(cluster, {"tx", "send", "--signer", signer(1), "--to", recipient(), "--value", "1gwei"});
  ASSERT_EQ(unnamed.status.code, 0) << unnamed.err;
  ASSERT_THAT(unnamed.err, StartsWith("request id "));
  const auto name = unnamed.err.substr(11, 36);
  EXPECT_EQ(fact(unnamed.out, "request id"), name);
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "2");
}

TEST(cli_tx, list_filters_by_signer_state_and_limit) {
  TxCluster cluster;
  EXPECT_EQ(out_of(cluster, {"tx", "list"}), "no transactions\n");
  std::vector<std::string> ids;
  for (const auto* name : {"a", "b", "c"}) ids.push_back(send_one(cluster, name));
  cluster.create(0, transfer(signer(1), "other", 1));
  ASSERT_TRUE(cluster.all_confirmed()) << cluster.describe();

  const auto all = out_of(cluster, {"tx", "list"});
  EXPECT_THAT(all, StartsWith("TX ID"));
  EXPECT_THAT(all, ContainsRegex(ids[0] + "  CONFIRMED  31337  0      0xf39fd6e5….266  0x00000000….000  1 wei  a"));
  EXPECT_EQ(std::ranges::count(all, '\n'), 5);
  const auto first = json_of(cluster, {"tx", "list", "--limit", "3"});
  const std::string cursor(first.at("nextCursor").as_string());
  EXPECT_THAT(out_of(cluster, {"tx", "list", "--limit", "3"}),
              HasSubstr("there are more: raise --limit, give --all, or go on with --cursor " + cursor + "\n"));
  const auto rest = json_of(cluster, {"tx", "list", "--cursor", cursor});
  ASSERT_EQ(rest.at("items").as_array().size(), 1U);
  EXPECT_EQ(rest.at("items").at(0).at("txId").as_string(), ids[0]) << "the oldest";
  const auto every = json_of(cluster, {"tx", "list", "--all"});
  EXPECT_EQ(every.at("items").as_array().size(), 4U);
  EXPECT_TRUE(every.at("nextCursor").is_null());
  EXPECT_EQ(run(cluster, {"tx", "list", "--all", "--limit", "2"}).status.code, 2);
  const auto page = json_of(cluster, {"tx", "list", "--signer", kWritten, "--state", "CONFIRMED"});
  EXPECT_TRUE(page.at("nextCursor").is_null());
  const auto& of_one = page.at("items").as_array();
  ASSERT_EQ(of_one.size(), 3U);
  EXPECT_TRUE(json_of(cluster, {"tx", "list", "--limit", "2"}).at("nextCursor").is_string());
  EXPECT_EQ(of_one[0].at("txId").as_string(), ids[2]) << "the newest comes first";
  EXPECT_EQ(out_of(cluster, {"tx", "list", "--state", "stuck"}), "no transactions\n");
  EXPECT_EQ(run(cluster, {"tx", "list", "--state", "LOST"}).status.code, 2);
  EXPECT_EQ(run(cluster, {"tx", "list", "--signer", kMistyped}).status.code, 2);
}

TEST(cli_tx, the_exit_code_of_watch_says_how_the_transaction_ended) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "watched");
  ASSERT_EQ(run(cluster, {"tx", "watch", id, "--until", "submitted", "--timeout", "30s"}).status.code, 0);
  const auto early = run(cluster, {"tx", "watch", id, "--timeout", "300ms"});
  EXPECT_EQ(early.status.code, 4) << early.out << early.err;
  EXPECT_THAT(early.out, HasSubstr("TRACKING"));

  cluster.mine(3);
  const auto lines = run(cluster, {"tx", "watch", id, "--json"});
  ASSERT_EQ(lines.status.code, 0) << lines.err;
  std::istringstream in(lines.out);
  std::vector<json::value> documents;
  for (std::string line; std::getline(in, line);) documents.push_back(json::parse(line));
  ASSERT_GE(documents.size(), 4U);
  EXPECT_EQ(documents.front().at("step").at("to").as_string(), "ALLOCATED");
  EXPECT_EQ(documents.back().at("tx").at("state").as_string(), "CONFIRMED");

  // Creates a contract whose constructor reverts. The node sends it only if gas is given.
  const std::vector<std::string> bad{"tx", "send", "--signer", kWritten, "--data", "0x60006000fd"};
  const auto foreseen = run(cluster, bad);
  EXPECT_EQ(foreseen.status.code, 1);
  EXPECT_EQ(code_of(foreseen), "would_revert");
  cluster.rpc("evm_setIntervalMining", {1});
  const auto reverted = run(cluster, with(bad, {"--gas", "100000", "--wait", "confirmed", "--timeout", "60s"}));
  EXPECT_EQ(reverted.status.code, 3) << reverted.out << reverted.err;
  EXPECT_THAT(reverted.out, HasSubstr("FAILED_FINAL (reverted)"));
}

TEST(cli_tx, waiting_for_a_block_ends_with_3_and_the_reason_if_the_transaction_reverted_there) {
  TxCluster cluster({.settings = {.confirmations = "1000"}});
  const auto reverted = run(cluster, {"tx", "send", "--signer", kWritten, "--data", kRevertingCode, "--gas", "100000",
                                      "--request-id", "reverted", "--wait", "mined", "--timeout", "60s"});
  EXPECT_EQ(reverted.status.code, 3) << reverted.out << reverted.err;
  EXPECT_THAT(reverted.out, ContainsRegex("\nreverted in block [0-9]+: .*the shop is closed\n$"));
  const auto id = reverted.out.substr(12, 36);
  EXPECT_EQ(run(cluster, {"tx", "watch", id, "--until", "mined", "--timeout", "60s"}).status.code, 3);
  EXPECT_EQ(run(cluster, {"tx", "watch", id, "--until", "submitted", "--timeout", "60s"}).status.code, 0);
  const auto fine = run(cluster, with(send("fine"), {"--wait", "mined", "--timeout", "60s"}));
  EXPECT_EQ(fine.status.code, 0) << fine.out << fine.err;
}

TEST(cli_tx, a_watch_that_ends_early_says_that_the_work_goes_on_and_how_to_look_again) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "left alone");
  auto env = api_of(cluster);
  env.emplace_back("FENCEPOST_PROGRAM_NAME=./fp");
  const auto again = fmt::format("  ./fp tx watch {} --until mined --url {}", id, cluster.node(0).url(""));
  const std::vector<std::string> arguments{"tx", "watch", id, "--until", "mined", "--url", cluster.node(0).url("")};
  auto command = arguments;
  command.insert(command.begin(), fencepost_program());
  Terminal terminal(command, env);
  ASSERT_TRUE(terminal.shows("TRACKING")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("Stopped watching; the transaction goes on. Look again:")) << terminal.screen();
  ASSERT_TRUE(terminal.shows(again)) << terminal.screen();
  EXPECT_EQ(terminal.end(), -1) << "the shell sees that a signal ended it";

  const auto late = fencepost(with(arguments, {"--timeout", "100ms"}), env);
  EXPECT_EQ(late.status.code, 4);
  EXPECT_EQ(late.err, "The timeout passed; the transaction goes on. Look again:\n" + again + "\n");
  const auto for_scripts = fencepost(with(arguments, {"--timeout", "100ms", "--json"}), env);
  const auto error = json::parse(for_scripts.err);
  EXPECT_EQ(error.at("code").as_string(), "not_yet");
  EXPECT_EQ(error.at("exitCode").as_int64(), 4);
}

TEST(cli_tx, ctrl_c_while_send_waits_says_that_the_transaction_goes_on) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  auto command = with(send("left alone"), {"--wait", "confirmed"});
  command.insert(command.begin(), fencepost_program());
  Terminal terminal(command, api_of(cluster));
  ASSERT_TRUE(terminal.shows("TRACKING")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_TRUE(terminal.shows("Stopped watching; the transaction goes on. Look again:")) << terminal.screen();
  EXPECT_TRUE(terminal.shows("tx watch " + cluster.sql("SELECT tx_id FROM tx_view"))) << terminal.screen();
  EXPECT_EQ(terminal.end(), -1);
}

TEST(cli_tx, on_a_terminal_no_line_is_wider_than_its_columns) {
  TxCluster cluster;
  const auto sent =
      run(cluster, with(send("a request id that is rather long"), {"--wait", "confirmed", "--timeout", "60s"}));
  ASSERT_EQ(sent.status.code, 0) << sent.out << sent.err;
  const auto id = sent.out.substr(12, 36);
  const auto columns = [&](unsigned short width, std::vector<std::string> arguments) {
    SCOPED_TRACE(fmt::format("{} columns: fencepost {}", width, fmt::join(arguments, " ")));
    arguments.insert(arguments.begin(), fencepost_program());
    Terminal terminal(arguments, api_of(cluster), width);
    EXPECT_EQ(terminal.end(), 0);
    EXPECT_LE(terminal.widest_line(), width) << terminal.screen();
    return terminal.screen();
  };
  for (const unsigned short width : {80, 60}) {
    for (const auto& command : std::vector<std::vector<std::string>>{{"tx", "list"},
                                                                     {"tx", "history", id},
                                                                     {"tx", "watch", id},
                                                                     {"signer", "list", "--api"},
                                                                     {"chain", "list"},
                                                                     {"node", "list"},
                                                                     {"events", "--after", "0", "--no-follow"}}) {
      columns(width, command);
    }
  }
  const auto wide = columns(80, {"tx", "list"});
  EXPECT_THAT(wide, AllOf(HasSubstr("TX ID"), HasSubstr(id), HasSubstr("CREATED"), Not(HasSubstr("SIGNER"))));
  EXPECT_THAT(columns(200, {"tx", "list"}), AllOf(HasSubstr("SIGNER"), HasSubstr("REQUEST ID")));
  EXPECT_THAT(out_of(cluster, {"tx", "list"}), HasSubstr("SIGNER")) << "a pipe gets all columns";
}

TEST(cli_tx, chains_nodes_and_the_caller_are_listed) {
  TxCluster cluster({.nodes = 2});
  const auto chains = out_of(cluster, {"chain", "list"});
  EXPECT_THAT(chains, StartsWith("CHAIN  NAME"));
  EXPECT_THAT(chains, ContainsRegex("\n31337 .* read +ok "));
  const auto nodes = out_of(cluster, {"node", "list"});
  EXPECT_THAT(nodes, ContainsRegex("\nnode0[^ ]* +yes "));
  EXPECT_EQ(std::ranges::count(nodes, '\n'), 3);
  EXPECT_EQ(json_of(cluster, {"node", "list"}).at("items").as_array().size(), 2U);
  EXPECT_TRUE(json_of(cluster, {"chain", "list"}).at("nextCursor").is_null());
  const auto caller = out_of(cluster, {"whoami"});
  EXPECT_EQ(fact(caller, "node"), cluster.node(0).url(""));
  EXPECT_THAT(fact(caller, "scopes"), StartsWith("tx:read, tx:write, "));
  EXPECT_EQ(fact(caller, "signers"), "every");
  EXPECT_EQ(json_of(cluster, {"whoami"}).at("scopes").at(0).as_string(), "tx:read");
}

TEST(cli_tx, on_a_terminal_watch_draws_the_states_as_they_change) {
  TxCluster cluster({.anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "drawn");
  auto env = api_of(cluster);
  env.emplace_back("NO_COLOR=1");
  Terminal terminal({fencepost_program(), "tx", "watch", id, "--timeout", "60s"}, env);
  ASSERT_TRUE(terminal.shows("ALLOCATED ▸ [TRACKING] ▸ mined ▸ CONFIRMED")) << terminal.screen();
  cluster.mine(1);
  ASSERT_TRUE(terminal.shows("ALLOCATED ▸ TRACKING ▸ [mined 0/2] ▸ CONFIRMED")) << terminal.screen();
  cluster.mine(1);
  ASSERT_TRUE(terminal.shows("[mined 1/2]")) << terminal.screen();
  cluster.mine(1);
  ASSERT_TRUE(terminal.shows("ALLOCATED ▸ TRACKING ▸ mined ▸ [CONFIRMED]")) << terminal.screen();
  EXPECT_EQ(terminal.end(), 0);
}

TEST(cli_tx, each_failure_has_its_message_and_exit_code) {
  TxCluster cluster;
  const struct {
    int exit_code;
    std::string message;  // on stderr
    std::vector<std::string> arguments;
  } cases[] = {
      {2, "--signer is required", {"tx", "send"}},
      {2, "expected an amount", with(send("x"), {"--max-fee", "cheap"})},
      {2, "--max-fee", with(send("x"), {"--max-fee", "cheap"})},
      {2, "bad_checksum", {"tx", "send", "--signer", kMistyped, "--to", recipient()}},
      {2, "field: payload.to", {"tx", "send", "--signer", kWritten, "--to", "0x12"}},
      {2, "field: payload.data", {"tx", "send", "--signer", kWritten, "--to", recipient(), "--data", "0xabc"}},
      {2, "field: signer", {"tx", "send", "--signer", recipient(), "--to", recipient(), "--gas", "21000"}},
      {2, "--wait", with(send("x"), {"--wait", "forever"})},
      {2, "--wait", with(send("x"), {"--timeout", "5s"})},
      {2, "txId", {"tx", "get", "seven"}},
      {2, "expected a duration", {"tx", "watch", kUnknownId, "--timeout", "soon"}},
      {2, "--reason is required", {"tx", "cancel", kUnknownId}},
      {2, "--reason is required", {"tx", "resend", kUnknownId}},
      {2, "--reason is required", {"tx", "give-up", kUnknownId}},
      {2, "--next is required", {"signer", "reset-cursor", kWritten, "--reason", "r"}},
      {2, "bad_hash", {"tx", "record-hash", kUnknownId, "--hash", "0x12", "--reason", "r"}},
      {2, "checksum", {"signer", "accept-reconcile", kMistyped, "--reason", "r"}},
      {5, "no_such_tx", {"tx", "get", kUnknownId}},
      {5, "no_such_tx", {"tx", "history", kUnknownId}},
      {5, "no_such_tx", {"tx", "watch", kUnknownId}},
      {5, "no_such_tx", {"tx", "rebroadcast", kUnknownId, "--reason", "r"}},
      {5, "no_such_tx", {"tx", "give-up", kUnknownId, "--reason", "r"}},
      {5, "no_such_signer", {"signer", "fill-nonce", recipient(), "--nonce", "0", "--reason", "r"}},
      {5, "check that 'fencepost up' is running in that directory", {"tx", "list", "--data-dir", "/nowhere"}},
      {1, "bad_api_key", {"tx", "list", "--api-key", "fp_wrong"}},
      {6, "http://127.0.0.1:1", {"tx", "list", "--url", "http://127.0.0.1:1"}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("fencepost {}", fmt::join(c.arguments, " ")));
    const auto failed = run(cluster, c.arguments);
    EXPECT_EQ(failed.status.code, c.exit_code) << failed.out << failed.err;
    EXPECT_THAT(failed.err, HasSubstr(c.message));
    EXPECT_THAT(failed.out, IsEmpty());
    EXPECT_THAT(failed.err, Not(HasSubstr(cluster.key())));
  }
  EXPECT_EQ(cluster.sql("SELECT count(*) FROM tx_view"), "0");
  const auto nowhere = fencepost({"tx", "list"}, {"FENCEPOST_URL=", "FENCEPOST_API_KEY="});
  EXPECT_EQ(nowhere.status.code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("the URL of the node is not known"));
  EXPECT_THAT(fencepost({"--help"}).out, HasSubstr("Exit codes: fencepost help exit-codes"));
}

TEST(cli_tx, a_key_can_be_bound_to_a_signer_with_a_checksummed_address) {
  TxCluster cluster;
  const auto create = [&](const std::string& address) {
    return fencepost({"apikey", "create", "--config", cluster.node(0).config().string(), "--json", "--label", "mine",
                      "--scope", "tx:write", "--scope", "tx:read", "--signer", address});
  };
  const auto mistyped = create(kMistyped);
  EXPECT_EQ(mistyped.status.code, 2);
  EXPECT_THAT(mistyped.err, HasSubstr("checksum"));
  const auto made = create(kWritten);
  ASSERT_EQ(made.status.code, 0) << made.err;
  EXPECT_EQ(json::parse(made.out).at("signers").as_array().at(0).as_string(), signer(0));

  const std::string key(json::parse(made.out).at("key").as_string());
  const auto id = send_one(cluster, "with all rights");
  EXPECT_EQ(run(cluster, with(send("mine"), {"--api-key", key})).status.code, 0);
  const auto of_another =
      run(cluster, {"tx", "send", "--signer", signer(1), "--to", recipient(), "--gas", "21000", "--api-key", key});
  EXPECT_EQ(of_another.status.code, 1);
  EXPECT_EQ(code_of(of_another), "signer_not_allowed");
  const auto no_operator = run(cluster, {"tx", "cancel", id, "--reason", "r", "--api-key", key});
  EXPECT_EQ(no_operator.status.code, 1);
  EXPECT_THAT(no_operator.err, HasSubstr("tx:operate"));
}

TEST(cli_tx, an_operator_rebroadcasts_and_cancels_a_stuck_transaction) {
  TxCluster cluster({.settings = {.resubmit_interval = 60s, .stuck_after = 500ms}, .anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "stuck");
  ASSERT_TRUE(cluster.becomes(id, "state", "STUCK")) << cluster.describe();
  EXPECT_THAT(out_of(cluster, {"tx", "list", "--state", "STUCK"}), HasSubstr(id + "  STUCK"));

  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  const auto again = out_of(cluster, {"tx", "rebroadcast", id, "--reason", "the pool was emptied"});
  EXPECT_EQ(fact(again, "state"), "TRACKING");
  const auto hash = cluster.column(id, "tx_hash");
  ASSERT_TRUE(eventually([&] { return !cluster.rpc("eth_getTransactionByHash", {hash}).is_null(); }))
      << cluster.describe();

  const auto cancelled = json_of(cluster, {"tx", "cancel", id, "--reason", "wrong amount"});
  EXPECT_EQ(cancelled.at("subState").as_string(), "cancelling");
  EXPECT_NE(cancelled.at("txHash").as_string(), hash);
  cluster.rpc("evm_setIntervalMining", {1});
  const auto watched = run(cluster, {"tx", "watch", id, "--timeout", "60s"});
  EXPECT_EQ(watched.status.code, 3) << watched.out << watched.err << cluster.describe();
  EXPECT_THAT(watched.out, HasSubstr("FAILED_FINAL (cancelled_by_operator)"));
  EXPECT_THAT(watched.out, AllOf(HasSubstr("the pool was emptied"), HasSubstr("wrong amount")));
  EXPECT_EQ(cluster.balance(recipient()), 0);

  const auto late = run(cluster, {"tx", "cancel", id, "--reason", "once more"});
  EXPECT_EQ(late.status.code, 1);
  EXPECT_EQ(code_of(late), "wrong_state");
}

TEST(cli_tx, an_operator_fixes_a_signers_nonces) {
  TxCluster cluster({.settings = {.resubmit_interval = 60s, .nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  const auto elsewhere = [&](std::int64_t nonce) {
    const json::object tx{{"from", signer(0)},
                          {"to", recipient()},
                          {"value", "0x1"},
                          {"gas", "0x5208"},
                          {"nonce", fmt::format("0x{:x}", nonce)}};
    return std::string(cluster.rpc("eth_sendTransaction", {tx}).as_string());
  };
  const auto id = send_one(cluster, "lost");
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.rpc("anvil_dropTransaction", {cluster.column(id, "tx_hash")});
  const auto theirs = elsewhere(0);
  const auto recorded = out_of(cluster, {"tx", "record-hash", id, "--hash", theirs, "--reason", "the other wallet"});
  EXPECT_EQ(fact(recorded, "hash"), theirs);
  cluster.mine(3);
  ASSERT_EQ(run(cluster, {"tx", "watch", id, "--timeout", "60s"}).status.code, 0) << cluster.describe();

  const auto lost = elsewhere(1);
  ASSERT_TRUE(cluster.sql_becomes("SELECT needs_reconcile FROM signer_nonce_cursor", "t")) << cluster.describe();
  EXPECT_THAT(out_of(cluster, {"signer", "list", "--api"}), ContainsRegex(signer(0) + " .*NEEDS RECONCILE"));
  const auto refused = run(cluster, send("refused"));
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_EQ(code_of(refused), "signer_needs_reconcile");
  EXPECT_EQ(out_of(cluster, {"signer", "accept-reconcile", kWritten, "--reason", "it was me"}),
            signer(0) + " on chain 31337: the next nonce is 2\n");

  cluster.rpc("anvil_dropTransaction", {lost});
  const auto behind = send_one(cluster, "behind");
  EXPECT_EQ(run(cluster, {"signer", "fill-nonce", kWritten, "--nonce", "2", "--reason", "r"}).status.code, 1);
  const auto filled = out_of(cluster, {"signer", "fill-nonce", kWritten, "--nonce", "1", "--reason", "it was lost"});
  EXPECT_EQ(fact(filled, "nonce"), "1");
  EXPECT_THAT(fact(filled, "state"), HasSubstr("gap_fill"));
  cluster.rpc("evm_setIntervalMining", {1});
  EXPECT_EQ(run(cluster, {"tx", "watch", behind, "--timeout", "60s"}).status.code, 0) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 3);
}

TEST(cli_tx, an_operator_sends_again_what_a_reorg_has_undone) {
  TxCluster cluster({.settings = {.nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "undone");
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  const auto hash = cluster.column(id, "tx_hash");
  cluster.mine(3);
  ASSERT_EQ(run(cluster, {"tx", "watch", id, "--timeout", "60s"}).status.code, 0) << cluster.describe();
  EXPECT_EQ(code_of(run(cluster, {"tx", "resend", id, "--reason", "r"})), "not_undone");
  cluster.reorg(3);
  cluster.mine(3);
  ASSERT_TRUE(cluster.sql_becomes("SELECT reconcile_reason FROM signer_nonce_cursor", "undone")) << cluster.describe();
  EXPECT_THAT(out_of(cluster, {"signer", "list", "--api"}), ContainsRegex(signer(0) + " .*NEEDS RECONCILE: undone"));
  const auto accepted = run(cluster, {"signer", "accept-reconcile", kWritten, "--reason", "r"});
  EXPECT_EQ(accepted.status.code, 1);
  EXPECT_EQ(code_of(accepted), "nothing_to_reconcile");
  EXPECT_THAT(accepted.err, AllOf(HasSubstr("resend"), HasSubstr(id)));
  const auto sent = out_of(cluster, {"tx", "resend", id, "--reason", "the reorg undid it"});
  EXPECT_EQ(fact(sent, "hash"), hash);
  cluster.rpc("evm_setIntervalMining", {1});
  EXPECT_EQ(run(cluster, {"tx", "watch", id, "--timeout", "60s"}).status.code, 0) << cluster.describe();
  EXPECT_EQ(cluster.mined_count(signer(0)), 1);
}

TEST(cli_tx, an_operator_moves_a_cursor_down_after_a_development_chain_was_reset) {
  TxCluster cluster({.settings = {.nonce_state_timeout = 1s}, .anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "gone");
  ASSERT_TRUE(cluster.becomes(id, "state", "TRACKING")) << cluster.describe();
  cluster.mine(3);
  ASSERT_EQ(run(cluster, {"tx", "watch", id, "--timeout", "60s"}).status.code, 0) << cluster.describe();
  cluster.rpc("anvil_reset");
  ASSERT_TRUE(cluster.sql_becomes("SELECT reconcile_reason FROM signer_nonce_cursor", "undone")) << cluster.describe();
  const auto refused = run(cluster, {"signer", "reset-cursor", kWritten, "--next", "1", "--reason", "r"});
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_EQ(code_of(refused), "reset_refused");
  EXPECT_EQ(out_of(cluster, {"signer", "reset-cursor", kWritten, "--next", "0", "--reason", "anvil was restarted"}),
            signer(0) + " on chain 31337: the next nonce is 0\n1 nonces released, 0 open transactions given up\n");
  const auto next = send_one(cluster, "next");
  cluster.rpc("evm_setIntervalMining", {1});
  EXPECT_EQ(run(cluster, {"tx", "watch", next, "--timeout", "60s"}).status.code, 0) << cluster.describe();
}

TEST(cli_tx, an_operator_command_at_another_node_reports_the_leaders_url) {
  TxCluster cluster({.nodes = 2, .anvil = {"--no-mining"}});
  const auto id = send_one(cluster, "led by the first");
  ASSERT_EQ(cluster.leader_of(signer(0)), 0U);
  const auto refused = fencepost({"tx", "rebroadcast", id, "--reason", "r"}, api_of(cluster, 1));
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_EQ(code_of(refused), "not_leader");
  EXPECT_THAT(refused.err, HasSubstr("leader: " + cluster.node(0).url("")));
}

}  // namespace
}  // namespace fencepost::test
