// `fencepost up` as a new user runs it.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

// The fencepost commands that the welcome text suggests.
std::vector<std::string> pasted_commands(const std::string& welcome) {
  std::vector<std::string> out;
  std::istringstream lines(welcome.substr(std::min(welcome.size(), welcome.find("\nTry"))));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  " + fencepost_program())) out.push_back(line);
  }
  return out;
}

class Up : public testing::Test {
 protected:
  RunningFencepost start(const std::string& port = "0", const std::vector<std::string>& env = {},
                         const std::filesystem::path& cwd = {}) {
    return {{"up", "--data-dir", data_dir().string(), "--port", port}, dir_ / "output", env, cwd};
  }
  // `fencepost <arguments>` in the folder that has the data directory as its "var".
  Finished run_here(std::vector<std::string> arguments, const std::vector<std::string>& env = {}) const {
    arguments.insert(arguments.begin(), {"sh", "-c", R"(cd "$0" && exec "$@")", dir_.path(), fencepost_program()});
    return run_command(std::move(arguments), env);
  }
  std::filesystem::path data_dir() const { return dir_ / "var"; }
  std::filesystem::path announcement() const { return data_dir() / "up.json"; }
  bool comes_up() {
    return eventually([&] { return std::filesystem::exists(announcement()); }, 90s);
  }
  boost::json::value facts() const { return boost::json::parse(read_file(announcement())); }
  std::string fact(const char* name) const { return std::string(facts().at(name).as_string()); }
  Answer whoami() const { return ask({.url = fact("url") + "/api/v1/whoami", .key = fact("apiKey")}); }
  std::int64_t block_number() const {
    const auto answer =
        ask({"POST", fact("rpcUrl"), "", R"({"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]})"});
    return std::stoll(std::string(answer.json().at("result").as_string()), nullptr, 16);
  }
  // Every process that was started for this data directory, whatever its parent is now.
  std::string leftovers() const { return run_command({"pgrep", "-f", dir_.path().string()}).out; }

  TempDir dir_{"up"};
};

TEST_F(Up, starts_everything_prints_how_to_use_it_and_stops_cleanly) {
  auto up = start();
  ASSERT_TRUE(comes_up()) << up.output();

  struct stat info{};
  ASSERT_EQ(::stat(announcement().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(facts().at("pid").as_int64(), up.pid());
  EXPECT_EQ(facts().at("chainId").as_int64(), 31337);
  EXPECT_EQ(facts().at("signers").as_array().size(), 10U);

  // Check each line of the welcome text, which is printed after up.json is written.
  ASSERT_TRUE(eventually([&] { return up.output().find("Ctrl-C") != std::string::npos; })) << up.output();
  const auto text = up.output();
  for (const auto* name : {"url", "apiKey", "rpcUrl", "dsn"}) {
    EXPECT_NE(text.find(fact(name)), std::string::npos) << name << " is not in:\n" << text;
  }
  const auto commands = pasted_commands(text);
  ASSERT_EQ(commands.size(), 2U) << text;
  for (const auto& line : commands) {
    const auto done = run_command({"sh", "-c", line});
    EXPECT_EQ(done.status.code, 0) << line << "\n" << done.out << done.err;
  }
  EXPECT_EQ(whoami().status, 200U);
  EXPECT_EQ(ask({.url = fact("url") + "/readyz"}).status, 200U);
  EXPECT_EQ(exec_sql(fact("dsn"), "SELECT count(*) FROM api_key"), "1");
  const auto listed = fencepost({"apikey", "list", "--data-dir", data_dir().string()});
  EXPECT_NE(listed.out.find("dev key of fencepost up"), std::string::npos) << listed.err;
  ASSERT_TRUE(eventually([&] {
    return exec_sql(fact("dsn"),
                    "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'fencepost hears "
                    "%economy_work%'") == "1";
  }));
  const auto doctor = fencepost({"doctor", "--data-dir", data_dir().string()});
  EXPECT_EQ(doctor.status.code, 0) << doctor.out << doctor.err;
  EXPECT_NE(doctor.out.find("1 node(s), 1 listening on economy_work"), std::string::npos) << doctor.out;
  EXPECT_THAT(doctor.out, ContainsRegex("ok    chain dev .*31337")) << "the chain that up runs";
  EXPECT_THAT(doctor.out, ContainsRegex("ok    keystore .*10 development keys"));
  EXPECT_THAT(doctor.out, ContainsRegex("ok    email .*files in .*/mail"));
  const auto block = block_number();
  EXPECT_TRUE(eventually([&] { return block_number() > block; })) << "the chain mines no blocks";
  EXPECT_NE(leftovers(), "");

  const auto ended = up.interrupt();
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << up.output();
  EXPECT_FALSE(std::filesystem::exists(announcement()));
  EXPECT_EQ(leftovers(), "");
}

// It was over 3,000: each route, worker and statement had a histogram from the start.
TEST_F(Up, shows_a_few_hundred_lines_of_metrics) {
  auto up = start();
  ASSERT_TRUE(comes_up()) << up.output();
  std::string metrics;
  // Until the first audit of the ledger, which each start begins.
  ASSERT_TRUE(eventually([&] {
    metrics = ask({.url = fact("url") + "/metrics"}).body;
    return metrics.contains("\nfencepost_transfer_audit_wrong{");
  })) << metrics;
  EXPECT_LT(std::ranges::count(metrics, '\n'), 700) << metrics;
}

TEST_F(Up, commands_use_the_node_of_var_unless_a_flag_or_the_environment_names_another) {
  auto up = start();
  ASSERT_TRUE(comes_up()) << up.output();
  const auto signers = run_here({"signer", "list"});
  EXPECT_EQ(signers.status.code, 0) << signers.err;
  EXPECT_THAT(signers.out, StartsWith("SIGNER"));
  EXPECT_THAT(signers.out, ContainsRegex("\n0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266 +31337 .* 10000 ether"));
  EXPECT_EQ(std::ranges::count(signers.out, '\n'), 11);
  const auto keys = run_here({"apikey", "list"});
  EXPECT_THAT(keys.out, HasSubstr("dev key of fencepost up")) << keys.err;
  EXPECT_THAT(run_here({"doctor"}).out, HasSubstr("database.dsn from var/up.json"));

  const std::vector<std::string> elsewhere{"FENCEPOST_URL=http://127.0.0.1:1", "FENCEPOST_API_KEY=fp_x",
                                           "FENCEPOST_DATABASE_DSN=host=127.0.0.1 port=1"};
  const auto gone = run_here({"tx", "list"}, elsewhere);
  EXPECT_EQ(gone.status.code, 6);
  EXPECT_THAT(gone.err, HasSubstr("  url from: FENCEPOST_URL (key from FENCEPOST_API_KEY)\n"));
  EXPECT_EQ(run_here({"tx", "list", "--data-dir", "var"}, elsewhere).status.code, 0)
      << "a flag takes precedence over the environment";
  const auto no_database = run_here({"apikey", "list"}, elsewhere);
  EXPECT_EQ(no_database.status.code, 6) << no_database.err;
  EXPECT_THAT(no_database.err, HasSubstr("  database from: FENCEPOST_DATABASE_DSN\n"));
  EXPECT_EQ(run_here({"apikey", "list", "--data-dir", "var"}, elsewhere).status.code, 0);

  const auto wrong_key = run_here({"tx", "list", "--url", fact("url"), "--api-key", "fp_wrong"});
  EXPECT_EQ(wrong_key.status.code, 1);
  EXPECT_THAT(wrong_key.err, AllOf(HasSubstr("bad_api_key"), HasSubstr("  url from: --url (key from --api-key)\n")));

  EXPECT_TRUE(up.interrupt().success());
  const auto down = run_here({"tx", "list"}, {"FENCEPOST_URL=", "FENCEPOST_API_KEY="});
  EXPECT_EQ(down.status.code, 2);
  EXPECT_THAT(down.err, HasSubstr("No 'fencepost up' is running in ./var"));
}

TEST_F(Up, config_and_doctor_use_what_up_runs_with_whatever_their_own_environment_says) {
  const auto working = dir_ / "working";
  std::filesystem::create_directory(working);
  auto up = start("0",
                  {"FENCEPOST_CONFIRMATIONS_REQUIRED=5", "FENCEPOST_EMAIL_TRANSPORT=file",
                   "FENCEPOST_EMAIL_DIRECTORY=mails-of-up", "FENCEPOST_EMAIL_FROM=up@example.org"},
                  working);
  ASSERT_TRUE(comes_up()) << up.output();
  const auto shown = run_here({"config"}, {"FENCEPOST_CONFIRMATIONS_REQUIRED=7"});
  ASSERT_EQ(shown.status.code, 0) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("# the 'up' that runs in var\n"));
  EXPECT_THAT(shown.out, ContainsRegex("\n +required: 5\n"));
  EXPECT_THAT(shown.out, ContainsRegex("\n +chain_id: 31337\n"));
  EXPECT_THAT(shown.out, HasSubstr("dev_keys"));
  EXPECT_THAT(shown.out, testing::Not(HasSubstr("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")));
  const auto by_flag = fencepost({"config", "--data-dir", data_dir()}).out;
  EXPECT_EQ(by_flag.substr(by_flag.find('\n')), shown.out.substr(shown.out.find('\n')));
  const auto doctor = run_here({"doctor"}, {"FENCEPOST_EMAIL_DIRECTORY=/proc"});
  EXPECT_THAT(doctor.out, HasSubstr("as the 'up' in var runs"));
  EXPECT_THAT(doctor.out, HasSubstr("mails are files in " + (working / "mails-of-up").string()))
      << "relative to the working directory of up";
  EXPECT_THAT(run_here({"config"}, {"FENCEPOST_DATABASE_DSN=dbname=x"}).out, testing::Not(HasSubstr("31337")))
      << "another database is another configuration";

  const auto port = std::to_string(free_port());
  const RunningFencepost second({"serve", "--data-dir", data_dir()}, dir_ / "second", {"FENCEPOST_HTTP_PORT=" + port});
  EXPECT_TRUE(eventually([&] { return ask({.url = "http://127.0.0.1:" + port + "/readyz"}).status == 200; }, 30s))
      << "a second node on the database of up has settings of its own: " << second.output();

  up.kill();
  const auto gone = run_here({"config"});
  EXPECT_EQ(gone.status.code, 5);
  EXPECT_THAT(gone.err, HasSubstr("var/up.json is left over"));

  auto stale = facts();
  stale.as_object()["pid"] = ::getpid();  // as if this process had got the pid of `up`
  std::ofstream(announcement()) << boost::json::serialize(stale);
  const auto refused = run_here({"config"});
  EXPECT_EQ(refused.status.code, 5) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("var/up.json is left over"));
  EXPECT_THAT(run_here({"doctor"}).out, HasSubstr("FAIL  config        var/up.json is left over"));
}

TEST_F(Up, the_environment_configures_the_node_and_an_unknown_variable_is_a_warning) {
  auto up = start("0", {"FENCEPOST_CONFIRMATIONS_REQUIRED=5", "FENCEPOST_TX_MAX_INFLIGHT=100"});
  ASSERT_TRUE(comes_up()) << up.output();
  const auto chains = ask({.url = fact("url") + "/api/v1/chains", .key = fact("apiKey")}).json();
  EXPECT_EQ(chains.at("items").at(0).at("confirmationsRequired").as_string(), "5");
  EXPECT_THAT(up.output(), HasSubstr("FENCEPOST_TX_MAX_INFLIGHT: no such key, ignored; did you mean "
                                     "FENCEPOST_TX_MAX_IN_FLIGHT?"));
}

TEST_F(Up, after_kill_9_it_starts_again_with_the_same_data) {
  std::string key;
  std::int64_t block = 0;
  {
    auto up = start();
    ASSERT_TRUE(comes_up()) << up.output();
    key = fact("apiKey");
    exec_sql(fact("dsn"), "CREATE TABLE kept (id int); INSERT INTO kept VALUES (42)");
    // Wait until a state with at least two blocks has been written.
    ASSERT_TRUE(eventually([&] { return block_number() >= 8; }, 60s));
    block = 2;
    up.kill();
  }
  auto up = start();
  ASSERT_TRUE(eventually(
      [&] { return std::filesystem::exists(announcement()) && facts().at("pid").as_int64() == up.pid(); }, 90s))
      << up.output();
  EXPECT_EQ(fact("apiKey"), key);
  EXPECT_EQ(whoami().status, 200U);
  EXPECT_EQ(exec_sql(fact("dsn"), "SELECT id FROM kept"), "42");
  EXPECT_GT(block_number(), block);
  EXPECT_TRUE(up.interrupt().success());
  EXPECT_EQ(leftovers(), "");
}

TEST_F(Up, a_database_server_that_dies_is_restarted) {
  auto up = start();
  ASSERT_TRUE(comes_up()) << up.output();
  const auto pid_file = data_dir() / "postgres" / "cluster" / "postmaster.pid";
  const auto pid = std::stoi(read_file(pid_file));
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(eventually(
      [&] {
        const auto now = read_file(pid_file);
        return !now.empty() && std::stoi(now) != pid && ask({.url = fact("url") + "/readyz"}).status == 200;
      },
      60s))
      << up.output();
  EXPECT_EQ(whoami().status, 200U);
}

TEST_F(Up, a_taken_port_is_reported_and_no_process_is_left_running) {
  asio::io_context context;
  asio::ip::tcp::acceptor taken(context, {asio::ip::make_address("127.0.0.1"), 0});
  const auto port = std::to_string(taken.local_endpoint().port());
  auto up = start(port);
  ASSERT_TRUE(eventually([&] { return !up.running(); }, 90s));
  EXPECT_NE(up.output().find(port), std::string::npos) << up.output();
  EXPECT_FALSE(std::filesystem::exists(announcement()));
  EXPECT_EQ(leftovers(), "");
}

TEST_F(Up, a_second_up_in_the_same_data_directory_is_refused_and_the_first_keeps_running) {
  auto first = start();
  ASSERT_TRUE(comes_up()) << first.output();
  const auto second = fencepost({"up", "--data-dir", data_dir().string(), "--port", "0"});
  EXPECT_EQ(second.status.code, 1);
  EXPECT_NE(second.err.find(data_dir().string()), std::string::npos) << second.err;
  EXPECT_TRUE(std::filesystem::exists(announcement()));
  EXPECT_EQ(whoami().status, 200U);
}

}  // namespace
}  // namespace fencepost::test
