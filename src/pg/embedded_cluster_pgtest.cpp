#include <array>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "pg/embedded_cluster.hpp"
#include "runtime/leftover_process.hpp"
#include "tests/support/postgres.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::pg {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::exec_sql;
using test::TempDir;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<EmbeddedCluster> started(const fs::path& data_dir) {
  auto cluster = EmbeddedCluster::start({.data_dir = data_dir, .durable = false});
  if (!cluster) throw Exception(cluster.error());
  return std::move(*cluster);
}

bool anything_runs_in(const fs::path& pgdata) {
  return !LeftoverProcess::find_all([&](const ProcessInfo& p) { return p.cwd == pgdata; }).empty();
}

// Starts a program as the cluster's user.
ChildProcess run_as_owner_of(const fs::path& pgdata, std::vector<std::string> argv) {
  auto child = ChildProcess::start({.argv = std::move(argv), .cwd = "/", .run_as = cluster_user(pgdata).value()});
  if (!child) throw Exception(child.error());
  return std::move(*child);
}

TEST(embedded_cluster, keeps_its_data_from_run_to_run_and_leaves_nothing_running) {
  const TempDir dir;
  fs::path pgdata;
  {
    const auto cluster = started(dir / "pg");
    pgdata = cluster->pgdata();
    EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT current_database()"), "fencepost");
    EXPECT_EQ(exec_sql(cluster->dsn(), "SHOW listen_addresses"), "");
    EXPECT_EQ(exec_sql(cluster->dsn(), "SHOW server_encoding"), "UTF8");
    exec_sql(cluster->dsn(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
    EXPECT_TRUE(anything_runs_in(pgdata));
  }
  EXPECT_FALSE(anything_runs_in(pgdata));
  const auto again = started(dir / "pg");
  EXPECT_EQ(exec_sql(again->dsn(), "SELECT n FROM kept"), "7");
}

TEST(embedded_cluster, is_durable_by_default_and_takes_settings) {
  const TempDir dir;
  const auto cluster = EmbeddedCluster::start({.data_dir = dir / "pg", .settings = {{"work_mem", "12MB"}}});
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(exec_sql((*cluster)->dsn(), "SHOW fsync"), "on");
  EXPECT_EQ(exec_sql((*cluster)->dsn(), "SHOW synchronous_commit"), "on");
  EXPECT_EQ(exec_sql((*cluster)->dsn(), "SHOW work_mem"), "12MB");
}

TEST(embedded_cluster, only_its_owner_can_connect) {
  const TempDir dir;
  const auto cluster = started(dir / "pg");
  struct stat info{};
  ASSERT_EQ(::stat(cluster->socket_dir().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
  struct stat process{};
  ASSERT_EQ(::stat(fmt::format("/proc/{}", cluster->pid()).c_str(), &process), 0);
  EXPECT_NE(process.st_uid, 0U) << "PostgreSQL must not run as root";
  EXPECT_EQ(info.st_uid, process.st_uid);
}

TEST(embedded_cluster, a_second_owner_gets_an_error_with_the_pid_of_the_first) {
  const TempDir dir;
  const auto cluster = started(dir / "pg");
  const auto second = EmbeddedCluster::start({.data_dir = dir / "pg", .durable = false});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, "data_dir_in_use");
  EXPECT_THAT(second.error().message, HasSubstr(fmt::format("pid {}", ::getpid())));
  EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT 1"), "1") << "the first cluster still works";
}

TEST(embedded_cluster, works_under_a_long_path_with_spaces_and_quotes) {
  const TempDir dir;
  const auto place = dir / ("it's a, \"long\" path " + std::string(100, 'x'));
  const auto cluster = started(place);
  EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT 1"), "1");
  EXPECT_EQ(cluster->data_dir(), place);
  EXPECT_LE((cluster->socket_dir() / ".s.PGSQL.5432").string().size(), 107U);
  const auto socket_dir = cluster->socket_dir();
  cluster->stop();
  fs::remove_all(socket_dir);
}

TEST(embedded_cluster, an_incomplete_cluster_is_created_again) {
  const TempDir dir;
  fs::create_directories(dir / "pg/cluster.new/base");
  std::ofstream(dir / "pg/cluster.new/PG_VERSION") << "15\n";
  const auto cluster = started(dir / "pg");
  EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT 1"), "1");
  EXPECT_FALSE(fs::exists(dir / "pg/cluster.new"));
}

TEST(embedded_cluster, recovers_after_its_server_was_killed) {
  const TempDir dir;
  const auto cluster = started(dir / "pg");
  exec_sql(cluster->dsn(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
  exec_sql(cluster->dsn(), "CHECKPOINT");
  cluster->kill();
  EXPECT_FALSE(cluster->running());
  EXPECT_THROW(exec_sql(cluster->dsn(), "SELECT 1"), Exception);
  const auto restarted = cluster->restart();
  ASSERT_TRUE(restarted) << restarted.error().message;
  EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT n FROM kept"), "7");
}

// Starts a cluster in a separate process and kills that process. Returns the pid of the server it had started.
pid_t start_and_kill_an_owner(const fs::path& data_dir) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t owner = ::fork();
  if (owner == 0) {
    const auto cluster = started(data_dir);
    exec_sql(cluster->dsn(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
    const pid_t server = cluster->pid();
    if (::write(pipe[1], &server, sizeof server) != sizeof server) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  pid_t server = -1;
  EXPECT_EQ(::read(pipe[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  ::close(pipe[0]);
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  return server;
}

TEST(embedded_cluster, its_server_ends_when_its_owner_is_killed) {
  const TempDir dir;
  const pid_t server = start_and_kill_an_owner(dir / "pg");
  const auto held = LeftoverProcess::find(server, [](const ProcessInfo&) { return true; });
  EXPECT_TRUE(!held || held->wait_blocking_until(steady_clock::now() + 20s));
}

TEST(embedded_cluster, starts_again_right_after_its_owner_was_killed) {
  const TempDir dir;
  start_and_kill_an_owner(dir / "pg");
  const auto cluster = started(dir / "pg");
  EXPECT_EQ(exec_sql(cluster->dsn(), "SELECT n FROM kept"), "7");
}

TEST(embedded_cluster, stops_a_server_that_still_runs_on_its_data) {
  const TempDir dir;
  const auto first = started(dir / "pg");
  const auto pgdata = first->pgdata();
  const auto socket_dir = first->socket_dir();
  first->stop();
  const auto programs = find_cluster_programs(cluster_version(pgdata));
  ASSERT_TRUE(programs);
  auto left = run_as_owner_of(pgdata, {programs->bin_dir / "postgres", "-D", pgdata, "-h", "", "-k", socket_dir});
  const auto deadline = steady_clock::now() + 20s;
  while (!fs::exists(socket_dir / ".s.PGSQL.5432") && steady_clock::now() < deadline) {
    ASSERT_FALSE(left.wait_blocking_until(steady_clock::now() + 10ms)) << "the server should still run";
  }
  const auto restarted = first->restart();
  ASSERT_TRUE(restarted) << restarted.error().message;
  EXPECT_FALSE(left.running());
  EXPECT_EQ(exec_sql(first->dsn(), "SELECT 1"), "1");
}

TEST(embedded_cluster, starts_although_a_stale_pid_file_names_another_process) {
  const TempDir dir;
  const auto cluster = started(dir / "pg");
  cluster->stop();
  // A process of the same user: PostgreSQL itself would take it for a running server and refuse to start.
  auto stranger = run_as_owner_of(cluster->pgdata(), {"sleep", "1000"});
  for (const auto& file : {cluster->pgdata() / "postmaster.pid", cluster->socket_dir() / ".s.PGSQL.5432.lock"}) {
    std::ofstream(file) << stranger.pid() << "\n" << cluster->pgdata().string() << "\n";
  }
  const auto restarted = cluster->restart();
  ASSERT_TRUE(restarted) << restarted.error().message;
  EXPECT_TRUE(stranger.running()) << "a process that is not a server of this cluster is not signalled";
}

TEST(embedded_cluster, a_server_that_does_not_start_says_why) {
  const TempDir dir;
  const auto cluster =
      EmbeddedCluster::start({.data_dir = dir / "pg", .durable = false, .settings = {{"shared_buffers", "nonsense"}}});
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, "cluster_failed");
  EXPECT_THAT(cluster.error().message, HasSubstr("exited with code 1"));
  EXPECT_THAT(cluster.error().message, HasSubstr("invalid value for parameter \"shared_buffers\": \"nonsense\""));
}

TEST(embedded_cluster, uses_the_fallback_when_its_user_cannot_reach_the_data_directory) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root starts it as another user";
  const TempDir dir;
  const auto asked = dir / "home/var/pg";
  fs::create_directories(dir / "home");
  fs::permissions(dir / "home", fs::perms(0700));
  const auto start = [&] {
    return EmbeddedCluster::start({.data_dir = asked, .fallback_root = dir / "fallback", .durable = false}).value();
  };
  {
    const auto cluster = start();
    EXPECT_THAT(cluster->data_dir().string(), StartsWith((dir / "fallback/").string()));
    exec_sql(cluster->dsn(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)");
  }
  EXPECT_EQ(exec_sql(start()->dsn(), "SELECT n FROM kept"), "7");
}

TEST(embedded_cluster, a_narrow_umask_does_not_lock_its_user_out) {
  const TempDir dir;
  const auto before = ::umask(0077);
  const auto cluster = EmbeddedCluster::start({.data_dir = dir / "deep/down/pg", .durable = false});
  ::umask(before);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ((*cluster)->data_dir(), dir / "deep/down/pg");
}

TEST(embedded_cluster, a_cluster_of_a_version_that_is_not_installed_names_the_package) {
  const TempDir dir;
  fs::create_directories(dir / "pg/cluster");
  std::ofstream(dir / "pg/cluster/PG_VERSION") << "99\n";
  const auto cluster = EmbeddedCluster::start({.data_dir = dir / "pg"});
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().code, "postgres_missing");
  EXPECT_THAT(cluster.error().message, HasSubstr("postgresql-99"));
}

}  // namespace
}  // namespace fencepost::pg
