// Processes that an earlier, killed run of ours may have left behind.
//
// A pid read from a file proves nothing: it may be dead, or belong to somebody else by now. So a leftover is
// pinned first (a pidfd keeps naming the same process), then looked at in /proc, and only what the caller
// recognises is ever signalled.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/child_process.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost {

// What /proc tells of a live process. Fields we may not read (somebody else's process) are empty.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::filesystem::path exe;  // of a program replaced on disk since: without the " (deleted)"
  std::filesystem::path cwd;
  std::vector<std::string> argv;

  bool has_argument(const std::string& wanted) const;
};

// Nothing when there is no such process, or it is dead and only waits to be collected.
std::optional<ProcessInfo> process_info(pid_t pid);

class LeftoverProcess {
 public:
  using IsOurs = std::function<bool(const ProcessInfo&)>;

  // Nothing when `pid` does not live or `is_ours` does not recognise it.
  static std::optional<LeftoverProcess> find(pid_t pid, const IsOurs& is_ours);
  // Every live process that `is_ours` recognises, except ourselves.
  static std::vector<LeftoverProcess> find_all(const IsOurs& is_ours);

  pid_t pid() const { return info_.pid; }
  const ProcessInfo& info() const { return info_; }
  bool running() const;
  void signal(int number) const;
  // True when it is gone by then. Blocks.
  bool wait_blocking_until(std::chrono::steady_clock::time_point deadline) const;
  // Waits until the deadline of each step, then signals; `patience` is how long to wait after the last step.
  // False when it is still there after all that.
  bool stop_blocking(const StopPlan& plan, std::chrono::milliseconds patience) const;

 private:
  LeftoverProcess(ProcessInfo info, UniqueFd pidfd) : info_(std::move(info)), pidfd_(std::move(pidfd)) {}

  ProcessInfo info_;
  UniqueFd pidfd_;
};

}  // namespace fencepost
