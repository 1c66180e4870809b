// A child process that Fencepost starts, watches and stops.
//
//   auto child = ChildProcess::start({.argv = {"/usr/bin/anvil", "--port", "8545"},
//                                     .out = Output::file("anvil.log"), .err = Output::same_as_out()});
//   ExitStatus status = co_await child->stop({{SIGINT, 0s}, {SIGKILL, 10s}});
//
// A child inherits only what Options lists: every other descriptor is closed, no signal is blocked or ignored, and
// standard input is /dev/null.
//
// A child does not outlive its parent. The kernel sends it `death_signal` when the THREAD that called `start` ends (not
// only when the process ends), so call `start` on a thread that lives as long as the process: main, or an event loop.
// Waiting uses a pidfd, so no SIGCHLD handler is needed.
//
// A ChildProcess belongs to one thread at a time. It must outlive the coroutines that wait on it.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "base/error.hpp"
#include "runtime/async.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost {

// How a process ended: with an exit code, or by a signal.
struct ExitStatus {
  int code = 0;    // valid when signal is 0; -1 when other code of this process reaped the child
  int signal = 0;  // 0 when the process exited by itself

  bool success() const { return signal == 0 && code == 0; }
  // "exited with code 3", "was ended by SIGKILL".
  std::string to_string() const;

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// Where a child's standard output or error goes.
struct Output {
  enum class Kind { kInherit, kNull, kFile, kPipe, kSameAsOut };

  Kind kind = Kind::kNull;
  std::filesystem::path path;

  static Output inherit() { return {Kind::kInherit, {}}; }
  static Output null() { return {Kind::kNull, {}}; }
  // Appends to the file. The parent creates it with mode 0600, before the child drops privileges.
  static Output file(std::filesystem::path p) { return {Kind::kFile, std::move(p)}; }
  // Read the output from `take_out()` or `take_err()`, e.g. with `for_each_line`.
  static Output pipe() { return {Kind::kPipe, {}}; }
  // For `err` only.
  static Output same_as_out() { return {Kind::kSameAsOut, {}}; }
};

// The user and groups that the child runs as. Requires root.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;

  // Returns nullopt when there is no such user.
  static std::optional<Credentials> of_user(const std::string& name);
  static std::optional<Credentials> of_uid(uid_t uid);
};

// Sends `signal` when the process still runs `after` the stop began.
struct StopStep {
  int signal = 0;
  std::chrono::milliseconds after{0};
};
using StopPlan = std::vector<StopStep>;

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;                // argv[0] is a path, or a name that is looked up in PATH
    std::optional<std::vector<std::string>> env;  // "NAME=value"; nullopt: the parent's environment
    std::filesystem::path cwd;                    // empty: the parent's directory
    Output out;
    Output err;
    std::optional<Credentials> run_as;
    bool own_group = true;       // Ctrl-C at the terminal then reaches only the parent, which stops the child in order
    int death_signal = SIGKILL;  // see above; 0: the child may outlive its parent
  };

  // Returns once the program runs. Otherwise fails with `cannot_start` and the reason:
  // "cannot run /x/postgres: No such file or directory".
  static Result<ChildProcess> start(const Options& options);

  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills the process if it still runs, and waits for its end. For an orderly end, call stop first.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Returns nullopt while the process runs.
  std::optional<ExitStatus> status();
  bool running() { return !status(); }

  // Return false when the process has ended already. `signal_group` signals the whole group and requires `own_group`.
  bool signal(int number);
  bool signal_group(int number);

  // Several coroutines of one event loop may wait at once. `wait_until` returns nullopt at the deadline. Both throw
  // system_error when cancelled.
  awaitable<ExitStatus> wait();
  awaitable<std::optional<ExitStatus>> wait_until(std::chrono::steady_clock::time_point deadline);
  // Signals by the plan, then waits without a limit after its last step: end a plan with SIGKILL.
  awaitable<ExitStatus> stop(StopPlan plan);

  // The same, blocking the calling thread: for start-up, command-line tools and tests.
  ExitStatus wait_blocking();
  std::optional<ExitStatus> wait_blocking_until(std::chrono::steady_clock::time_point deadline);
  ExitStatus stop_blocking(const StopPlan& plan);

  // The reading end of an Output::pipe(), which the caller then owns; empty for other outputs or when taken already.
  UniqueFd take_out() { return std::move(out_); }
  UniqueFd take_err() { return std::move(err_); }
  // Becomes readable when the process has ended. This object owns the descriptor: do not close it.
  int pidfd() const { return pidfd_.get(); }

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd, UniqueFd out, UniqueFd err, bool own_group);
  void kill_and_reap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd out_;
  UniqueFd err_;
  bool own_group_ = false;
  std::optional<ExitStatus> status_;
};

// Calls `on_line` with each line, without its newline, until the writer closes. A line longer than `max_line` is passed
// in pieces. Runs on the coroutine's event loop.
awaitable<> for_each_line(UniqueFd from, std::function<void(std::string_view)> on_line, std::size_t max_line = 16384);

// Returns the first executable file of that name in PATH; nullopt when there is none.
std::optional<std::filesystem::path> find_in_path(const std::string& program);

// "SIGTERM", or "signal 63" for a signal without a name.
std::string signal_name(int number);

}  // namespace fencepost
