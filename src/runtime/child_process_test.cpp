#include "runtime/child_process.hpp"

#include <array>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "runtime/leftover_process.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Reads until every writer has closed its end.
std::string read_to_end(const UniqueFd& fd) {
  std::string text;
  std::array<char, 4096> chunk{};
  for (;;) {
    const auto got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

std::string read_line(const UniqueFd& fd) {
  std::string text;
  char c = 0;
  while (::read(fd.get(), &c, 1) == 1 && c != '\n') text += c;
  return text;
}

ChildProcess::Options shell(std::string script) {
  return {.argv = {"/bin/sh", "-c", std::move(script)}, .out = Output::pipe(), .err = Output::same_as_out()};
}

// A shell that runs until a signal that it does not trap ends it. Its sleep outlives it, so signal the group too.
constexpr auto kWaitForEver = "echo ready; while :; do sleep 1000 & wait $!; done";

struct KillGroup {
  pid_t group;
  ~KillGroup() { ::kill(-group, SIGKILL); }
};

ChildProcess started(const ChildProcess::Options& options) {
  auto child = ChildProcess::start(options);
  if (!child) throw Exception(child.error());
  return std::move(*child);
}

std::string output_of(const ChildProcess::Options& options) {
  auto child = started(options);
  auto text = read_to_end(child.take_out());
  child.wait_blocking();
  return text;
}

class ScratchFile {
 public:
  std::string path() const { return dir_ / "file"; }
  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  test::TempDir dir_{"child"};
};

TEST(child_process, reports_the_exit_code) {
  auto child = started(shell("exit 7"));
  EXPECT_EQ(child.wait_blocking(), (ExitStatus{7, 0}));
  EXPECT_EQ(child.status()->to_string(), "exited with code 7");
  EXPECT_FALSE(child.signal(SIGTERM)) << "a process that has ended cannot be signalled";
}

TEST(child_process, reports_the_signal_that_ended_it) {
  auto child = started(shell("kill -TERM $$; read never"));
  EXPECT_EQ(child.wait_blocking(), (ExitStatus{0, SIGTERM}));
  EXPECT_EQ(child.status()->to_string(), "was ended by SIGTERM");
}

TEST(child_process, says_why_a_program_cannot_run) {
  const auto missing = ChildProcess::start({.argv = {"/nowhere/postgres"}});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, "cannot_start");
  EXPECT_EQ(missing.error().message, "cannot run /nowhere/postgres: No such file or directory");

  const auto not_a_program = ChildProcess::start({.argv = {"/etc/passwd"}});
  ASSERT_FALSE(not_a_program);
  EXPECT_THAT(not_a_program.error().message, HasSubstr("Permission denied"));

  const auto unknown = ChildProcess::start({.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("not found in PATH"));

  const auto bad_cwd = ChildProcess::start({.argv = {"/bin/true"}, .cwd = "/nowhere"});
  ASSERT_FALSE(bad_cwd);
  EXPECT_EQ(bad_cwd.error().message, "cannot run /bin/true in /nowhere: No such file or directory");
}

TEST(child_process, passes_arguments_environment_and_directory) {
  auto options = shell("printf '%s|%s|%s' \"$1\" \"$WORD\" \"$PWD\"");
  options.argv.insert(options.argv.end(), {"sh", "it's \"one\" argument"});
  options.env = std::vector<std::string>{"WORD=a b"};
  options.cwd = "/usr";
  EXPECT_EQ(output_of(options), "it's \"one\" argument|a b|/usr");
}

TEST(child_process, finds_a_bare_name_in_path) {
  EXPECT_EQ(output_of({.argv = {"printf", "found"}, .out = Output::pipe()}), "found");
}

TEST(child_process, appends_to_a_file) {
  const ScratchFile file;
  for (const auto* word : {"one", "two"}) {
    auto options = shell(std::string("echo ") + word + "; echo err >&2");
    options.out = Output::file(file.path());
    started(options).wait_blocking();
  }
  EXPECT_EQ(file.text(), "one\nerr\ntwo\nerr\n");
}

TEST(child_process, keeps_output_and_errors_apart) {
  auto options = shell("echo out; echo err >&2");
  options.err = Output::pipe();
  auto child = started(options);
  EXPECT_EQ(read_to_end(child.take_out()), "out\n");
  EXPECT_EQ(read_to_end(child.take_err()), "err\n");
  child.wait_blocking();
}

TEST(child_process, inherits_no_other_descriptor) {
  const UniqueFd leak(::open("/etc/passwd", O_RDONLY));  // deliberately without O_CLOEXEC
  ASSERT_TRUE(leak);
  // ls itself opens /proc/self/fd as 3.
  EXPECT_EQ(output_of({.argv = {"ls", "/proc/self/fd"}, .out = Output::pipe()}), "0\n1\n2\n3\n");
}

TEST(child_process, inherits_no_ignored_or_blocked_signal) {
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t block;
  ::sigemptyset(&block);
  ::sigaddset(&block, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &block, nullptr);
  const auto text = output_of({.argv = {"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}, .out = Output::pipe()});
  ::pthread_sigmask(SIG_UNBLOCK, &block, nullptr);
  ::signal(SIGUSR1, SIG_DFL);
  EXPECT_EQ(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(child_process, drops_to_another_user_with_its_groups) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto nobody = Credentials::of_user("nobody");
  ASSERT_TRUE(nobody);
  auto options = shell("id -u; id -g; id -G; grep NoNewPrivs /proc/self/status >/dev/null");
  options.run_as = nobody;
  EXPECT_EQ(output_of(options), fmt::format("{0}\n{1}\n{1}\n", nobody->uid, nobody->gid));
}

TEST(child_process, an_unknown_user_gives_no_credentials) {
  EXPECT_FALSE(Credentials::of_user("no-such-user-here"));
}

// Exits with 0 when an unprivileged user gets the error that it cannot become root.
[[noreturn]] void try_to_become_root() {
  if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(1);
  auto options = shell("true");
  options.run_as = Credentials{0, 0, {0}};
  const auto child = ChildProcess::start(options);
  ::_exit(!child && child.error().message.contains("as uid 0: Operation not permitted") ? 0 : 2);
}

TEST(child_process, says_when_it_may_not_become_that_user) {
  EXPECT_EXIT(try_to_become_root(), ::testing::ExitedWithCode(0), "");
}

// A process between the test and the child, which the test can kill. It reports the child's pid, then waits.
struct Middle {
  pid_t pid = -1;
  pid_t child = -1;
};

Middle start_through_a_middle(const ChildProcess::Options& options) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  Middle middle;
  middle.pid = ::fork();
  if (middle.pid == 0) {
    auto child = ChildProcess::start(options);
    const pid_t pid = child ? child->pid() : -1;
    if (::write(pipe[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  EXPECT_EQ(::read(pipe[0], &middle.child, sizeof middle.child), static_cast<ssize_t>(sizeof middle.child));
  ::close(pipe[0]);
  return middle;
}

void expect_dies_with_its_parent(const ChildProcess::Options& options) {
  const auto middle = start_through_a_middle(options);
  ASSERT_GT(middle.child, 0);
  const auto held = LeftoverProcess::find(middle.child, [](const ProcessInfo&) { return true; });
  ASSERT_TRUE(held);
  ::kill(middle.pid, SIGKILL);
  ::waitpid(middle.pid, nullptr, 0);
  EXPECT_TRUE(held->wait_blocking_until(steady_clock::now() + 10s));
}

TEST(child_process, dies_with_its_parent) {
  auto options = shell("exec sleep 1000");
  options.out = Output::null();
  expect_dies_with_its_parent(options);
}

TEST(child_process, dies_with_its_parent_after_a_change_of_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto options = shell("exec sleep 1000");
  options.out = Output::null();
  options.run_as = Credentials::of_user("nobody");
  options.death_signal = SIGTERM;
  expect_dies_with_its_parent(options);
}

TEST(child_process, stop_escalates_when_the_child_ignores_a_signal) {
  auto child = started(shell(std::string("trap '' INT; ") + kWaitForEver));
  const KillGroup cleanup{child.pid()};
  const UniqueFd out = child.take_out();
  ASSERT_EQ(read_line(out), "ready");
  const auto begin = steady_clock::now();
  const auto status = child.stop_blocking({{SIGINT, 0ms}, {SIGTERM, 150ms}, {SIGKILL, 60s}});
  EXPECT_EQ(status, (ExitStatus{0, SIGTERM}));
  EXPECT_GE(steady_clock::now() - begin, 150ms);
}

TEST(child_process, stop_does_not_escalate_when_the_child_exits) {
  auto child = started(shell(std::string("trap 'exit 3' INT; ") + kWaitForEver));
  const KillGroup cleanup{child.pid()};
  const UniqueFd out = child.take_out();
  ASSERT_EQ(read_line(out), "ready");
  EXPECT_EQ(child.stop_blocking({{SIGINT, 0ms}, {SIGKILL, 60s}}), (ExitStatus{3, 0}));
}

TEST(child_process, the_destructor_leaves_nothing_running) {
  std::optional<LeftoverProcess> held;
  {
    auto child = started(shell("exec sleep 1000"));
    held = LeftoverProcess::find(child.pid(), [](const ProcessInfo&) { return true; });
    ASSERT_TRUE(held);
  }
  EXPECT_FALSE(held->running());
}

awaitable<ExitStatus> stop_after_a_look(ChildProcess& child) {
  const auto early = co_await child.wait_until(steady_clock::now() + 20ms);
  EXPECT_FALSE(early) << "the child still runs at the deadline";
  StopPlan plan{{SIGINT, 0ms}, {SIGKILL, 60s}};
  co_return co_await child.stop(plan);
}

TEST(child_process, several_coroutines_may_wait_for_the_end) {
  auto child = started({.argv = {"sleep", "1000"}});
  asio::io_context context(1);
  auto waited = asio::co_spawn(context, child.wait(), asio::use_future);
  auto stopped = asio::co_spawn(context, stop_after_a_look(child), asio::use_future);
  context.run();
  EXPECT_EQ(waited.get(), (ExitStatus{0, SIGINT}));
  EXPECT_EQ(stopped.get(), (ExitStatus{0, SIGINT}));
}

TEST(child_process, waiting_can_be_cancelled) {
  auto child = started({.argv = {"sleep", "1000"}});
  asio::io_context context(1);
  asio::cancellation_signal cancel;
  std::exception_ptr failure;
  asio::co_spawn(
      context, child.wait(),
      asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& e, ExitStatus) { failure = e; }));
  context.poll();
  cancel.emit(asio::cancellation_type::all);
  context.run();
  ASSERT_TRUE(failure);
  EXPECT_THROW(std::rethrow_exception(failure), boost::system::system_error);
  EXPECT_TRUE(child.running());
}

TEST(child_process, hands_over_output_line_by_line) {
  auto child = started(shell("printf 'one\\n\\nthree'"));
  std::vector<std::string> lines;
  run_blocking(for_each_line(child.take_out(), [&](std::string_view line) { lines.emplace_back(line); }));
  EXPECT_THAT(lines, ElementsAre("one", "", "three"));
  child.wait_blocking();
}

TEST(child_process, splits_a_line_that_is_too_long) {
  auto child = started(shell("head -c 100000 /dev/zero | tr '\\0' x"));
  std::size_t longest = 0;
  std::size_t total = 0;
  const auto measure = [&](std::string_view line) {
    longest = std::max(longest, line.size());
    total += line.size();
  };
  run_blocking(for_each_line(child.take_out(), measure, 10000));
  EXPECT_EQ(total, 100000U);
  EXPECT_LT(longest, 10000U + 4096U);
  child.wait_blocking();
}

TEST(leftover_process, recognises_a_program_by_what_it_was_started_with) {
  auto child = started({.argv = {"sleep", "1000"}, .cwd = "/usr"});
  const auto info = process_info(child.pid());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->parent, ::getpid());
  EXPECT_EQ(info->exe.filename(), "sleep");
  EXPECT_EQ(info->cwd, "/usr");
  EXPECT_TRUE(info->has_argument("1000"));
  EXPECT_FALSE(info->has_argument("100"));
  const auto own = process_info(::getpid());
  ASSERT_TRUE(own);
  EXPECT_GE(info->start_ticks, own->start_ticks);
  EXPECT_GT(own->start_ticks, 0);

  EXPECT_FALSE(LeftoverProcess::find(child.pid(), [](const ProcessInfo& p) { return p.exe.filename() == "postgres"; }));
  const auto all = LeftoverProcess::find_all(
      [](const ProcessInfo& p) { return p.exe.filename() == "sleep" && p.parent == ::getpid(); });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().pid(), child.pid());
}

TEST(leftover_process, a_zombie_is_not_alive) {
  auto child = started(shell("exit 0"));
  pollfd watch{child.pidfd(), POLLIN, 0};
  ASSERT_EQ(::poll(&watch, 1, 10000), 1);
  EXPECT_FALSE(process_info(child.pid()));
  EXPECT_FALSE(LeftoverProcess::find(child.pid(), [](const ProcessInfo&) { return true; }));
}

TEST(leftover_process, is_stopped_by_escalation) {
  auto child = started(shell(std::string("trap '' INT; ") + kWaitForEver));
  const KillGroup cleanup{child.pid()};
  const UniqueFd out = child.take_out();
  ASSERT_EQ(read_line(out), "ready");
  const auto held = LeftoverProcess::find(child.pid(), [](const ProcessInfo&) { return true; });
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->stop_blocking({{SIGINT, 0ms}}, 50ms)) << "the process ignores SIGINT";
  EXPECT_TRUE(held->stop_blocking({{SIGINT, 0ms}, {SIGKILL, 10ms}}, 10s));
}

}  // namespace
}  // namespace fencepost
