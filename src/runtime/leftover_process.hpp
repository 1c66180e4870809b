// Orphaned processes of an earlier run of Fencepost that was killed.
//
// A pid read from a file is not reliable: the process may be dead, and the pid may belong to another process by now. So
// a pidfd pins the process first (it always refers to the same process), then /proc is read, and only a process that
// the caller recognises is signalled.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/child_process.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost {

// The facts in /proc about a live process. Fields that may not be read (another user's process) are empty.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::int64_t start_ticks = 0;  // since boot; with the pid it names one process, also after the pid is used again
  std::filesystem::path exe;     // without the " (deleted)" of a program that was replaced on disk
  std::filesystem::path cwd;
  std::vector<std::string> argv;

  bool has_argument(const std::string& wanted) const;
};

// Returns nullopt when there is no such process, or when it is a zombie.
std::optional<ProcessInfo> process_info(pid_t pid);

class LeftoverProcess {
 public:
  using IsOurs = std::function<bool(const ProcessInfo&)>;

  // Returns nullopt when `pid` is not alive or `is_ours` does not recognise it.
  static std::optional<LeftoverProcess> find(pid_t pid, const IsOurs& is_ours);
  // Every live process that `is_ours` recognises, except the calling one.
  static std::vector<LeftoverProcess> find_all(const IsOurs& is_ours);

  pid_t pid() const { return info_.pid; }
  const ProcessInfo& info() const { return info_; }
  bool running() const;
  void signal(int number) const;
  // Returns true when the process has ended by then. Blocks.
  bool wait_blocking_until(std::chrono::steady_clock::time_point deadline) const;
  // Waits until the deadline of each step, then signals; waits for `patience` after the last step. Blocks. Returns
  // false when the process still runs after that.
  bool stop_blocking(const StopPlan& plan, std::chrono::milliseconds patience) const;

 private:
  LeftoverProcess(ProcessInfo info, UniqueFd pidfd) : info_(std::move(info)), pidfd_(std::move(pidfd)) {}

  ProcessInfo info_;
  UniqueFd pidfd_;
};

}  // namespace fencepost
