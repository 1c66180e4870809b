#include "dev/dev_chain.hpp"

#include <array>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <boost/asio/ip/tcp.hpp>

#include "http/client.hpp"
#include "runtime/leftover_process.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;
using test::TempDir;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

awaitable<Result<json::value>> send_rpc(std::string url, std::string method, json::array params) {
  http::Client client(co_await this_executor(), {});
  const json::value call{{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", params}};
  http::ClientRequest request{.method = "POST", .url = url, .headers = {{"content-type", "application/json"}}};
  request.body = json::serialize(call);
  const auto reply = co_await client.send(std::move(request));
  if (!reply) co_return fail(reply.error());
  co_return json::parse(reply->body).at("result");
}

Result<json::value> rpc(const DevChain& chain, const std::string& method, json::array params = {}) {
  return run_blocking(send_rpc(chain.rpc_url(), method, std::move(params)));
}

// Returns -1 if the chain does not answer.
std::int64_t block_number(const DevChain& chain) {
  const auto number = rpc(chain, "eth_blockNumber");
  return number ? std::stoll(std::string(number->as_string()), nullptr, 16) : -1;
}

std::string block_hash(const DevChain& chain, std::int64_t number) {
  const auto block = rpc(chain, "eth_getBlockByNumber", {fmt::format("{:#x}", number), false});
  return block && block->is_object() ? std::string(block->at("hash").as_string()) : "";
}

void mine(const DevChain& chain, int blocks) {
  const auto mined = rpc(chain, "anvil_mine", {fmt::format("{:#x}", blocks)});
  ASSERT_TRUE(mined) << mined.error().message;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

DevChain::Options options_in(const TempDir& dir) {
  return {.dir = dir / "anvil", .port = 0, .program = test::anvil_program()};
}

std::unique_ptr<DevChain> started(const DevChain::Options& options) {
  auto chain = DevChain::start(options);
  if (!chain) throw Exception(chain.error());
  return std::move(*chain);
}

TEST(dev_chain, has_ten_accounts_and_its_chain_id_and_mines_at_intervals) {
  const TempDir dir;
  const auto chain = started(options_in(dir));
  EXPECT_EQ(chain->accounts().size(), 10U);
  EXPECT_EQ(chain->accounts().front(), "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
  EXPECT_EQ(rpc(*chain, "eth_chainId").value().as_string(), "0x7a69");
  EXPECT_EQ(chain->chain_id(), 31337U);
  EXPECT_TRUE(chain->healthy());
  EXPECT_TRUE(eventually([&] { return block_number(*chain) >= 2; }));
}

TEST(dev_chain, continues_from_its_saved_state) {
  const TempDir dir;
  std::string sent;
  pid_t pid = 0;
  {
    const auto chain = started(options_in(dir));
    pid = chain->pid();
    const json::object transfer{
        {"from", chain->accounts()[0]}, {"to", "0x00000000000000000000000000000000000000aa"}, {"value", "0x7"}};
    sent = rpc(*chain, "eth_sendTransaction", {transfer}).value().as_string();
    mine(*chain, 50);
  }
  EXPECT_FALSE(process_info(pid)) << "anvil must end with its owner";
  const auto chain = started(options_in(dir));
  EXPECT_GE(block_number(*chain), 50);
  EXPECT_EQ(rpc(*chain, "eth_getBalance", {"0x00000000000000000000000000000000000000aa", "latest"}).value(), "0x7");
  EXPECT_TRUE(rpc(*chain, "eth_getTransactionReceipt", {sent}).value().is_object())
      << "the receipt must survive a restart";
}

TEST(dev_chain, is_restarted_with_recent_state_when_anvil_is_killed) {
  const TempDir dir;
  const auto chain = started(options_in(dir));
  mine(*chain, 50);
  // Check the copy, which is never half written: anvil may be killed in the middle of its next dump.
  const auto copy = dir / "anvil/state.good.json";
  ASSERT_TRUE(eventually([&] { return read_all(copy).contains("\"best_block_number\":5"); })) << "written every 5 s";
  const pid_t first = chain->pid();
  const auto url = chain->rpc_url();
  ::kill(first, SIGKILL);
  ASSERT_TRUE(eventually([&] { return chain->restarts() == 1 && block_number(*chain) >= 50; }));
  EXPECT_NE(chain->pid(), first);
  EXPECT_EQ(chain->rpc_url(), url);
  EXPECT_TRUE(chain->healthy()) << "a single restart must not count as unhealthy";
}

TEST(dev_chain, keeps_its_genesis_when_its_first_dump_is_truncated) {
  const TempDir dir;
  const auto chain = started(options_in(dir));
  const auto genesis = block_hash(*chain, 0);
  // Wait until a new chain would have another genesis: its timestamp is in seconds.
  ASSERT_TRUE(eventually([&] { return block_number(*chain) >= 2; }));
  const auto state = dir / "anvil/state.json";
  const std::string cut = R"({"block":{"number":"0x2"},"accounts":{"0x)";
  ::kill(chain->pid(), SIGSTOP);  // so that anvil writes no dump of its own
  std::ofstream(state, std::ios::binary | std::ios::trunc) << cut;
  ::kill(chain->pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return chain->restarts() == 1 && block_number(*chain) >= 0; }));
  EXPECT_EQ(read_all(dir / "anvil/state.broken.json"), cut);
  EXPECT_EQ(block_hash(*chain, 0), genesis) << "a new chain was started";
}

TEST(dev_chain, copies_each_dump_before_the_next_is_written) {
  const TempDir dir;
  const auto chain = started(options_in(dir));
  const auto best_block = [&](const char* name) -> std::int64_t {
    const auto text = read_all(dir / name);
    const std::string label = "\"best_block_number\":";
    const auto at = text.find(label);
    return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + label.size());
  };
  mine(*chain, 50);
  std::int64_t first = -1;
  ASSERT_TRUE(eventually([&] { return (first = best_block("anvil/state.json")) >= 50; }));
  ASSERT_TRUE(eventually([&] { return best_block("anvil/state.json") > first; })) << "written every 5 s";
  EXPECT_GE(best_block("anvil/state.good.json"), first);
}

TEST(dev_chain, loses_no_block_when_its_owner_is_killed) {
  const TempDir dir;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto chain = started(options_in(dir));
    mine(*chain, 50);
    const pid_t anvil = chain->pid();
    if (::write(pipe[1], &anvil, sizeof anvil) != sizeof anvil) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  pid_t anvil = 0;
  ASSERT_EQ(::read(pipe[0], &anvil, sizeof anvil), static_cast<ssize_t>(sizeof anvil));
  ::close(pipe[0]);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);

  const auto chain = started(options_in(dir));
  EXPECT_GE(block_number(*chain), 50);
  EXPECT_FALSE(process_info(anvil)) << "the orphaned anvil still runs";
}

TEST(dev_chain, stops_an_orphaned_anvil_that_uses_its_state) {
  const TempDir dir;
  const auto state = (dir / "anvil/state.json").string();
  fs::create_directories(dir / "anvil");
  auto left = ChildProcess::start({.argv = {test::anvil_program(), "--port", "0", "--state", state}});
  ASSERT_TRUE(left);
  const auto chain = started(options_in(dir));
  EXPECT_FALSE(left->running());
}

// Writes a state with `blocks` blocks and has a second run accept it, so that a good copy exists. Returns the state.
std::string make_good_state(const TempDir& dir, int blocks) {
  {
    const auto chain = started(options_in(dir));
    mine(*chain, blocks);
  }
  started(options_in(dir))->stop();
  return read_all(dir / "anvil/state.json");
}

TEST(dev_chain, a_damaged_state_is_replaced_by_the_last_good_one) {
  const TempDir dir;
  const auto whole = make_good_state(dir, 50);
  const auto half = whole.substr(0, whole.size() / 2);
  std::ofstream(dir / "anvil/state.json", std::ios::binary | std::ios::trunc) << half;
  const auto chain = started(options_in(dir));
  EXPECT_GE(block_number(*chain), 50);
  EXPECT_EQ(read_all(dir / "anvil/state.broken.json"), half);
}

TEST(dev_chain, a_state_that_anvil_refuses_is_replaced_by_the_last_good_one) {
  const TempDir dir;
  make_good_state(dir, 50);
  std::ofstream(dir / "anvil/state.json") << R"({"whole":"but not a state"})";
  const auto chain = started(options_in(dir));
  EXPECT_GE(block_number(*chain), 50);
  EXPECT_EQ(read_all(dir / "anvil/state.broken.json"), R"({"whole":"but not a state"})");
}

TEST(dev_chain, starts_a_new_chain_when_no_state_is_good) {
  const TempDir dir;
  fs::create_directories(dir / "anvil");
  for (const auto* name : {"anvil/state.json", "anvil/state.good.json"}) {
    std::ofstream(dir / name) << R"({"whole":"but not a state"})";
  }
  const auto chain = started(options_in(dir));
  EXPECT_GE(block_number(*chain), 0);
}

TEST(dev_chain, uses_another_port_when_the_configured_one_is_taken) {
  const TempDir dir;
  asio::io_context context;
  const asio::ip::tcp::acceptor taken(context, {asio::ip::address_v4::loopback(), 0});
  auto options = options_in(dir);
  options.port = taken.local_endpoint().port();
  const auto chain = started(options);
  EXPECT_NE(chain->rpc_url(), fmt::format("http://127.0.0.1:{}", options.port));
  EXPECT_GE(block_number(*chain), 0);
}

TEST(dev_chain, a_second_owner_is_refused) {
  const TempDir dir;
  const auto chain = started(options_in(dir));
  const auto second = DevChain::start(options_in(dir));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "data_dir_in_use");
  EXPECT_GE(block_number(*chain), 0) << "the first chain must still answer";
}

TEST(dev_chain, is_unhealthy_after_repeated_crashes_and_healthy_once_it_keeps_running) {
  const TempDir dir;
  const auto sick = dir / "sick";
  auto options = options_in(dir);
  options.program = dir / "sometimes";
  options.backoff = {.initial = 1ms, .cap = 20ms};
  options.settled = 1500ms;
  std::ofstream(options.program) << fmt::format(
      "#!/bin/sh\n[ -e '{}' ] && {{ echo 'I feel sick' >&2; exit 3; }}\nexec '{}' \"$@\"\n", sick.string(),
      test::anvil_program().string());
  fs::permissions(options.program, fs::perms::owner_all);
  const auto chain = started(options);
  std::ofstream(sick).close();
  ::kill(chain->pid(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return !chain->healthy(); }));
  EXPECT_GE(chain->restarts(), 3U);
  fs::remove(sick);
  EXPECT_TRUE(eventually([&] { return chain->healthy(); }, 60s));
  EXPECT_GE(block_number(*chain), 0);
}

TEST(dev_chain, reports_why_it_does_not_start) {
  const TempDir dir;
  auto options = options_in(dir);
  options.program = dir / "broken";
  std::ofstream(options.program) << "#!/bin/sh\necho 'out of luck' >&2\nexit 3\n";
  fs::permissions(options.program, fs::perms::owner_all);
  const auto chain = DevChain::start(options);
  ASSERT_FALSE(chain);
  EXPECT_EQ(chain.error().code, "dev_chain_failed");
  EXPECT_THAT(chain.error().message, HasSubstr("exited with code 3"));
  EXPECT_THAT(chain.error().message, HasSubstr("out of luck"));

  options.program = "/nowhere/anvil";
  EXPECT_EQ(DevChain::start(options).error().code, "cannot_start");
}

TEST(dev_chain, finds_the_native_program_behind_the_wrapper) {
  const TempDir dir;
  const auto scope = dir / "node_modules/@foundry-rs";
  const auto native = scope / test::anvil_program().parent_path().parent_path().filename() / "bin/anvil";
  fs::create_directories(native.parent_path());
  fs::create_directories(scope / "anvil");
  fs::create_directories(dir / "bin");
  std::ofstream(native) << "ELF";
  std::ofstream(scope / "anvil/bin.mjs") << "#!/usr/bin/env node\n";
  for (const auto& file : {native, scope / "anvil/bin.mjs"}) fs::permissions(file, fs::perms::owner_all);
  fs::create_symlink(scope / "anvil/bin.mjs", dir / "bin/anvil");

  // Runs find_anvil() in the given working directory, with only the wrapper in PATH.
  const auto probe = [&](const fs::path& working_dir) {
    const auto before = fs::current_path();
    fs::current_path(working_dir);
    const std::string path = ::getenv("PATH");
    ::setenv("PATH", (dir / "bin").c_str(), 1);
    auto found = find_anvil();
    ::setenv("PATH", path.c_str(), 1);
    fs::current_path(before);
    return found.value();
  };
  EXPECT_EQ(probe(dir.path()), native) << "below the working directory";
  fs::create_directories(dir / "deep/down");
  EXPECT_EQ(probe(dir / "deep/down"), native) << "above the working directory";
  const auto from_root = probe("/");
  EXPECT_THAT(from_root.string(), MatchesRegex(".*/node_modules/@foundry-rs/anvil-linux-.*/bin/anvil"));
}

}  // namespace
}  // namespace fencepost
