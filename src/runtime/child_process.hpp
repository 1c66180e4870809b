// A program that we start, watch and stop.
//
//   auto child = ChildProcess::start({.argv = {"/usr/bin/anvil", "--port", "8545"},
//                                     .out = Output::file("anvil.log"), .err = Output::same_as_out()});
//   ExitStatus status = co_await child->stop({{SIGINT, 0s}, {SIGKILL, 10s}});
//
// What a child is given is said in Options and nothing else reaches it: every other descriptor is closed, no
// signal is blocked or ignored, standard input is /dev/null.
//
// A child does not outlive us. `death_signal` is sent to it by the kernel when the THREAD that called `start`
// ends (not only the process), so start children from a thread that lives as long as the process: main, or an
// event loop. Waiting uses a pidfd, so there is no SIGCHLD handler to fight over.
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

// How a process ended: by itself with a code, or by a signal.
struct ExitStatus {
  int code = 0;    // valid when signal is 0; -1 when somebody else collected it
  int signal = 0;  // 0: it exited by itself

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
  // Appended to; made with mode 0600 by us, before any privilege is dropped.
  static Output file(std::filesystem::path p) { return {Kind::kFile, std::move(p)}; }
  // Read what comes from `take_out()` or `take_err()`, e.g. with `for_each_line`.
  static Output pipe() { return {Kind::kPipe, {}}; }
  // For `err` only.
  static Output same_as_out() { return {Kind::kSameAsOut, {}}; }
};

// Whom to become. Only root may.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;

  // Nothing when there is no such user.
  static std::optional<Credentials> of_user(const std::string& name);
  static std::optional<Credentials> of_uid(uid_t uid);
};

// Send `signal` once `after` has passed since the stop began and the process is still there.
struct StopStep {
  int signal = 0;
  std::chrono::milliseconds after{0};
};
using StopPlan = std::vector<StopStep>;

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;                // argv[0] is a path, or a name to be found in PATH
    std::optional<std::vector<std::string>> env;  // "NAME=value"; nothing: ours
    std::filesystem::path cwd;                    // empty: ours
    Output out;
    Output err;
    std::optional<Credentials> run_as;
    bool own_group = true;       // so that Ctrl-C at the terminal reaches only us, and we stop it in order
    int death_signal = SIGKILL;  // see above; 0: it may outlive us
  };

  // Returns once the program runs. `cannot_start` when it does not, with the reason:
  // "cannot run /x/postgres: No such file or directory".
  static Result<ChildProcess> start(const Options& options);

  ChildProcess(ChildProcess&&) noexcept = default;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills what still runs and waits for it: an owner who wants an orderly end calls stop before.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  // Nothing while it runs.
  std::optional<ExitStatus> status();
  bool running() { return !status(); }

  // False when it has ended already. `signal_group` reaches the whole process group and needs `own_group`.
  bool signal(int number);
  bool signal_group(int number);

  // Several coroutines of one event loop may wait at once. Throws system_error when cancelled.
  awaitable<ExitStatus> wait();
  awaitable<std::optional<ExitStatus>> wait_until(std::chrono::steady_clock::time_point deadline);
  // After the last step it waits for as long as it takes: end a plan with SIGKILL.
  awaitable<ExitStatus> stop(StopPlan plan);

  // The same for threads that may block: start-up, command-line tools, tests.
  ExitStatus wait_blocking();
  std::optional<ExitStatus> wait_blocking_until(std::chrono::steady_clock::time_point deadline);
  ExitStatus stop_blocking(const StopPlan& plan);

  // The reading ends of what was asked for with Output::pipe(); empty otherwise or when taken already.
  UniqueFd take_out() { return std::move(out_); }
  UniqueFd take_err() { return std::move(err_); }
  // Readable when the process has ended. Ours: do not close it.
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

// Calls `on_line` with each line (no newline at its end) until the other side closes. A line longer than
// `max_line` is handed over in pieces. Runs on the coroutine's event loop.
awaitable<> for_each_line(UniqueFd from, std::function<void(std::string_view)> on_line, std::size_t max_line = 16384);

// The first executable file of that name in PATH, or nothing.
std::optional<std::filesystem::path> find_in_path(const std::string& program);

// "SIGTERM", or "signal 63" for those without a name.
std::string signal_name(int number);

}  // namespace fencepost
