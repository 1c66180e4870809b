// clients/typescript, packed as for npm: what is in the package, its types, its own tests, and a real node.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "runtime/read_file.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/process.hpp"
#include "tests/support/running_up.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/tcp_proxy.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/tx_cluster.hpp"
#include "tests/support/typescript_client.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

fs::path client_dir() {
  return source_dir() / "clients/typescript";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// The blocks of a page that begin with ```ts.
std::vector<std::string> examples_of(const fs::path& page) {
  std::vector<std::string> out;
  std::istringstream lines(read_file(page));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```ts";
      if (inside) out.emplace_back();
    } else if (inside) {
      out.back() += line + "\n";
    }
  }
  return out;
}

// A project of TypeScript that has installed the client.
class ClientProject : public testing::Test {
 protected:
  ClientProject() {
    install_client(dir_.path());
    fs::create_directories(dir_ / "node_modules/@types");
    fs::create_directory_symlink(client_dir() / "node_modules/@types/node", dir_ / "node_modules/@types/node");
    write("package.json", R"({"type": "module"})");
    write("tsconfig.json", R"({
      "compilerOptions": {
        "strict": true, "noEmit": true, "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true,
        "target": "es2022", "lib": ["es2022"], "module": "nodenext", "types": ["node"]
      },
      "include": ["*.ts"]
    })");
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(dir_ / name) << text; }
  // What the compiler says about the files; empty: nothing.
  std::string complaints() const {
    const auto compiler = client_dir() / "node_modules/typescript/bin/tsc";
    const auto done = run_command({"node", compiler, "--project", dir_.path()}, {}, 120s);
    return done.status.success() ? "" : done.out + done.err;
  }

  TempDir dir_{"client"};
};

TEST_F(ClientProject, a_program_may_say_what_the_api_has_and_nothing_else) {
  fs::copy_file(client_dir() / "test/types.ts", dir_ / "types.ts");
  EXPECT_EQ(complaints(), "");
}

TEST_F(ClientProject, the_examples_of_the_readme_compile) {
  const auto examples = examples_of(client_dir() / "README.md");
  EXPECT_GE(examples.size(), 4U);
  for (std::size_t i = 0; i < examples.size(); ++i) write(fmt::format("example_{}.ts", i), examples[i]);
  EXPECT_EQ(complaints(), "");
}

TEST(client_typescript, the_package_has_the_compiled_client_and_nothing_else) {
  const auto listed = words_of(run_command({"tar", "-tzf", client_package().string()}).out);
  const std::set<std::string> names(listed.begin(), listed.end());
  std::set<std::string> expected{"package/package.json", "package/README.md", "package/LICENSE"};
  for (const auto& entry : fs::directory_iterator(client_dir() / "src")) {
    const auto stem = "package/dist/" + entry.path().stem().string();
    expected.insert({stem + ".js", stem + ".d.ts"});
  }
  EXPECT_EQ(names, expected);
}

TEST(client_typescript, its_own_tests_pass) {
  const TempDir dir("client");
  const auto client = install_client(dir.path());
  fs::copy(client_dir() / "test", client / "test", fs::copy_options::recursive);
  const auto done = run_command({"sh", "-c", "cd \"$0\" && exec node --test test/*.test.mjs", client}, {}, 120s);
  EXPECT_TRUE(done.status.success()) << done.out << done.err;
  EXPECT_THAT(done.out, testing::ContainsRegex("(^|\n)(#|ℹ) pass [1-9][0-9]"));
}

TEST(client_typescript, requests_lists_errors_and_events_work_on_a_real_node) {
  const RunningUp up;
  const auto client = install_client(up.path(""));
  fs::copy(client_dir() / "test", client / "test", fs::copy_options::recursive);
  auto env = up.environment();
  env.push_back("SIGNER=" + signer(0));
  const auto done = run_command({"node", "--test", (client / "test/live/requests.test.mjs").string()}, env, 120s);
  EXPECT_TRUE(done.status.success()) << done.out << done.err << up.output();
}

// A program that follows the events through a proxy, and a log to which the test appends.
class Following : public testing::Test {
 protected:
  Following() {
    client_ = install_client(dir_.path());
    fs::copy(client_dir() / "test", client_ / "test", fs::copy_options::recursive);
    const auto url = cluster_.node(0).url("");
    proxy_.emplace("127.0.0.1", static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1))));
  }
  void follow(const std::vector<std::string>& after) {
    std::vector<std::string> argv{"node", client_ / "test/live/follow.mjs"};
    argv.insert(argv.end(), after.begin(), after.end());
    follower_.emplace(std::move(argv), dir_ / "output",
                      std::vector{fmt::format("FENCEPOST_URL=http://127.0.0.1:{}", proxy_->port()),
                                  "FENCEPOST_API_KEY=" + cluster_.key()});
    ASSERT_TRUE(connected()) << follower_->output();
  }
  bool connected() {
    return eventually([&] { return cluster_.node(0).metric("event_streams") == 1; });
  }
  void append(int count) const {
    cluster_.sql(
        fmt::format("INSERT INTO event (type, subject, data) SELECT 'TxConfirmed', 'tx/' || n % 10, "
                    "jsonb_build_object('signer', '{}', 'chainId', 31337) FROM generate_series(1, {}) AS n",
                    signer(0), count));
  }
  // The ids that the program has printed; its reports about connections are not numbers.
  std::vector<std::string> printed() const {
    std::vector<std::string> ids;
    std::istringstream lines(follower_->output());
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty() && std::ranges::all_of(line, [](char c) { return c >= '0' && c <= '9'; })) ids.push_back(line);
    }
    return ids;
  }
  std::vector<std::string> appended() const {
    return words_of(cluster_.sql("SELECT string_agg(seq::text, ' ' ORDER BY seq) FROM event WHERE type IS NOT NULL"));
  }
  bool prints(std::size_t count) const {
    return eventually([&] { return printed().size() >= count; }, 60s);
  }

  TxCluster cluster_{{.nodes = 1, .own_events = true}};
  TempDir dir_{"follow"};
  fs::path client_;
  std::optional<TcpProxy> proxy_;
  std::optional<RunningProgram> follower_;
};

TEST_F(Following, no_event_is_lost_or_repeated_when_connections_are_cut_and_the_node_is_killed) {
  follow({"0"});
  std::size_t sent = 0;
  const auto more = [&](int count) {
    append(count);
    sent += static_cast<std::size_t>(count);
  };
  // Cut at bytes that are in the middle of an event, of a line, of a number.
  for (const std::size_t bytes : {1U, 137U, 4'001U, 60'013U}) {
    proxy_->cut_after(Direction::kToClient, bytes);
    more(500);
    ASSERT_TRUE(prints(sent)) << follower_->output();
  }
  more(300);
  proxy_->cut();
  more(300);
  ASSERT_TRUE(prints(sent)) << follower_->output();
  more(300);
  cluster_.node(0).kill();
  more(300);
  cluster_.node(0).start();
  more(300);
  ASSERT_TRUE(prints(sent)) << follower_->output();
  EXPECT_EQ(printed(), appended());
  EXPECT_TRUE(follower_->running());
}

TEST_F(Following, an_event_is_not_lost_when_the_first_connection_ends_before_any_event) {
  append(3);
  // The node reads the log a moment later. This is how it says how far it has come.
  const auto newest = [&] { return cluster_.get(0, "/api/v1/events?lastEventId=9000000000").json().at("newest"); };
  ASSERT_TRUE(eventually([&] { return newest() == "3"; }));
  follow({});
  proxy_->refuse();
  proxy_->cut();
  append(5);
  proxy_->pass();
  ASSERT_TRUE(prints(5)) << follower_->output();
  const auto all = appended();
  EXPECT_EQ(printed(), std::vector(all.end() - 5, all.end()));
}

}  // namespace
}  // namespace fencepost::test
