#include "runtime/leftover_process.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <sstream>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "runtime/pidfd.hpp"
#include "runtime/read_file.hpp"

namespace fencepost {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

fs::path read_link(const fs::path& link) {
  std::error_code unreadable;
  std::string target = fs::read_symlink(link, unreadable).string();
  constexpr std::string_view kDeleted = " (deleted)";
  if (target.ends_with(kDeleted)) target.resize(target.size() - kDeleted.size());
  return target;
}

std::vector<std::string> split_at_nul(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\0', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

bool ProcessInfo::has_argument(const std::string& wanted) const {
  return std::ranges::find(argv, wanted) != argv.end();
}

std::optional<ProcessInfo> process_info(pid_t pid) {
  const fs::path directory = fmt::format("/proc/{}", pid);
  // "pid (name) state parent …", where the name may contain any character, also brackets and spaces.
  const std::string stat = read_file(directory / "stat");
  const auto name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessInfo info{.pid = pid};
  std::istringstream fields(stat.substr(name_end + 1));
  char state = 0;
  fields >> state >> info.parent;
  constexpr int kBetweenParentAndStart = 17;
  std::string skipped;
  for (int i = 0; i < kBetweenParentAndStart; ++i) fields >> skipped;
  fields >> info.start_ticks;
  if (!fields || state == 'Z' || state == 'X') return std::nullopt;

  info.exe = read_link(directory / "exe");
  info.cwd = read_link(directory / "cwd");
  info.argv = split_at_nul(read_file(directory / "cmdline"));
  return info;
}

std::optional<LeftoverProcess> LeftoverProcess::find(pid_t pid, const IsOurs& is_ours) {
  if (pid <= 1 || pid == ::getpid()) return std::nullopt;
  UniqueFd pidfd = open_pidfd(pid);
  if (!pidfd) return std::nullopt;
  auto info = process_info(pid);
  if (!info || !is_ours(*info)) return std::nullopt;
  LeftoverProcess process(std::move(*info), std::move(pidfd));
  // The process is alive after /proc was read, so the facts read belong to the process that the pidfd pins.
  if (!process.running()) return std::nullopt;
  return process;
}

std::vector<LeftoverProcess> LeftoverProcess::find_all(const IsOurs& is_ours) {
  std::vector<LeftoverProcess> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator("/proc", ec)) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) continue;
    if (auto process = find(pid, is_ours)) found.push_back(std::move(*process));
  }
  return found;
}

bool LeftoverProcess::running() const {
  return !wait_blocking_until(steady_clock::now());
}

void LeftoverProcess::signal(int number) const {
  send_signal(pidfd_, number);
}

bool LeftoverProcess::wait_blocking_until(steady_clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    pollfd watch{pidfd_.get(), POLLIN, 0};
    const int ready = ::poll(&watch, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX)));
    if (ready > 0) return true;
    if (steady_clock::now() >= deadline) return false;
  }
}

bool LeftoverProcess::stop_blocking(const StopPlan& plan, std::chrono::milliseconds patience) const {
  const auto begin = steady_clock::now();
  for (const auto& step : plan) {
    if (wait_blocking_until(begin + step.after)) return true;
    signal(step.signal);
  }
  return wait_blocking_until(steady_clock::now() + patience);
}

}  // namespace fencepost
