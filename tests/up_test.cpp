// `fencepost up`, as a newcomer meets it.
#include <fstream>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/json/parse.hpp>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {
namespace {

using namespace std::chrono_literals;

class Up : public testing::Test {
 protected:
  RunningFencepost start(const std::string& port = "0") {
    return {{"up", "--data-dir", data_dir().string(), "--port", port}, dir_ / "output"};
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
  // Every process that was started for this data directory, whoever its parent is now.
  std::string leftovers() const { return run_command({"pgrep", "-f", dir_.path().string()}).out; }

  TempDir dir_{"up"};
};

TEST_F(Up, starts_everything_says_how_to_use_it_and_stops_in_order) {
  auto up = start();
  ASSERT_TRUE(comes_up()) << up.output();

  struct stat info{};
  ASSERT_EQ(::stat(announcement().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(facts().at("pid").as_int64(), up.pid());
  EXPECT_EQ(facts().at("chainId").as_int64(), 31337);
  EXPECT_EQ(facts().at("signers").as_array().size(), 10U);

  // Each line of the welcome is true. It is said once the announcement is written.
  ASSERT_TRUE(eventually([&] { return up.output().find("Ctrl-C") != std::string::npos; })) << up.output();
  const auto text = up.output();
  for (const auto* name : {"url", "apiKey", "rpcUrl", "dsn"}) {
    EXPECT_NE(text.find(fact(name)), std::string::npos) << name << " is not in:\n" << text;
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
  const auto block = block_number();
  EXPECT_TRUE(eventually([&] { return block_number() > block; })) << "the chain does not mine by itself";
  EXPECT_NE(leftovers(), "");

  const auto ended = up.interrupt();
  EXPECT_TRUE(ended.success()) << ended.to_string() << "\n" << up.output();
  EXPECT_FALSE(std::filesystem::exists(announcement()));
  EXPECT_EQ(leftovers(), "");
}

TEST_F(Up, after_kill_9_it_comes_up_again_with_the_same_data) {
  std::string key;
  std::int64_t block = 0;
  {
    auto up = start();
    ASSERT_TRUE(comes_up()) << up.output();
    key = fact("apiKey");
    exec_sql(fact("dsn"), "CREATE TABLE kept (id int); INSERT INTO kept VALUES (42)");
    // Old enough that a state with this block has been written.
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

TEST_F(Up, a_database_server_that_dies_is_started_again) {
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

TEST_F(Up, a_taken_port_is_a_clear_message_and_nothing_is_left_running) {
  asio::io_context context;
  asio::ip::tcp::acceptor taken(context, {asio::ip::make_address("127.0.0.1"), 0});
  const auto port = std::to_string(taken.local_endpoint().port());
  auto up = start(port);
  ASSERT_TRUE(eventually([&] { return !up.running(); }, 90s));
  EXPECT_NE(up.output().find(port), std::string::npos) << up.output();
  EXPECT_FALSE(std::filesystem::exists(announcement()));
  EXPECT_EQ(leftovers(), "");
}

TEST_F(Up, a_second_one_in_the_same_place_is_refused_and_the_first_lives_on) {
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
