#include "runtime/child_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/system/system_error.hpp>

#include "runtime/pidfd.hpp"

namespace fencepost {
namespace {

using std::chrono::steady_clock;

constexpr int kUnknownCode = -1;

std::string errno_text(int number) {
  std::array<char, 256> buffer{};
  return ::strerror_r(number, buffer.data(), buffer.size());
}

Error cannot_start(std::string_view what, int number) {
  return unavailable("cannot_start", fmt::format("{}: {}", what, errno_text(number)));
}

// The steps of the new process between fork and exec, prepared before the fork: the child of a multi-threaded process
// may make only async-signal-safe calls, so it must not allocate or lock.
struct Plan {
  const char* path = nullptr;
  char* const* argv = nullptr;
  char* const* env = nullptr;
  const char* cwd = nullptr;
  std::array<int, 3> stdio{-1, -1, -1};  // each ≥ 3, or -1 to leave it unchanged
  const Credentials* run_as = nullptr;
  bool own_group = false;
  int death_signal = 0;
  pid_t parent = 0;
  int report = -1;
};

enum class Stage : int { kRedirect, kIdentity, kDirectory, kExec };

struct Failure {
  Stage stage;
  int number;
};

[[noreturn]] void give_up(const Plan& plan, Stage stage) {
  const Failure failure{stage, errno};
  // If the write fails too, the parent still sees the exit code 127.
  [[maybe_unused]] const auto written = ::write(plan.report, &failure, sizeof failure);
  ::_exit(127);
}

// The parent's handlers write into its event loop, so they must not run in the child. The child does not inherit
// ignored or blocked signals either.
void reset_signals() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void become(const Plan& plan) {
  if (plan.run_as == nullptr) return;
  // Direct system calls: glibc's wrappers would also signal the parent's other threads, which the child does not have.
  const auto& who = *plan.run_as;
  if (::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) != 0) give_up(plan, Stage::kIdentity);
  if (::syscall(SYS_setgid, who.gid) != 0) give_up(plan, Stage::kIdentity);
  if (::syscall(SYS_setuid, who.uid) != 0) give_up(plan, Stage::kIdentity);
}

[[noreturn]] void run_child(const Plan& plan) {
  if (plan.own_group) ::setpgid(0, 0);
  reset_signals();
  for (int target = 0; target < 3; ++target) {
    const int source = plan.stdio[static_cast<std::size_t>(target)];
    if (source >= 0 && ::dup2(source, target) < 0) give_up(plan, Stage::kRedirect);
  }
  become(plan);
  if (plan.cwd != nullptr && ::chdir(plan.cwd) != 0) give_up(plan, Stage::kDirectory);
  if (plan.death_signal != 0) {
    // After become(), because a change of user clears the death signal. The check covers a parent that died before this
    // call: the kernel sends no signal for it.
    ::prctl(PR_SET_PDEATHSIG, plan.death_signal);
    if (::getppid() != plan.parent) ::_exit(127);
  }
  ::close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  ::execve(plan.path, plan.argv, plan.env);
  give_up(plan, Stage::kExec);
}

// Duplicates to 3 or higher, so that redirecting one standard descriptor never overwrites the source of another.
UniqueFd raise_fd(UniqueFd fd) {
  if (!fd || fd.get() >= 3) return fd;
  return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
}

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(cannot_start("cannot make a pipe", errno));
  return Pipe{raise_fd(UniqueFd(ends[0])), raise_fd(UniqueFd(ends[1]))};
}

struct Redirect {
  UniqueFd target;  // the child writes to this
  UniqueFd reader;  // the parent's end of a pipe
};

Result<Redirect> open_output(const Output& output) {
  const auto opened = [](const char* path, int flags) -> Result<Redirect> {
    UniqueFd fd(::open(path, flags | O_WRONLY | O_CLOEXEC, 0600));
    if (!fd) return fail(cannot_start(fmt::format("cannot write to {}", path), errno));
    return Redirect{raise_fd(std::move(fd)), {}};
  };
  switch (output.kind) {
    case Output::Kind::kInherit:
    case Output::Kind::kSameAsOut:
      return Redirect{};
    case Output::Kind::kNull:
      return opened("/dev/null", 0);
    case Output::Kind::kFile:
      return opened(output.path.c_str(), O_CREAT | O_APPEND);
    case Output::Kind::kPipe: {
      auto pipe = make_pipe();
      if (!pipe) return fail(pipe.error());
      return Redirect{std::move(pipe->writer), std::move(pipe->reader)};
    }
  }
  std::unreachable();
}

std::vector<char*> c_array(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const auto& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<std::string> program_path(const std::string& name) {
  if (name.contains('/')) return std::filesystem::absolute(name).string();
  const auto found = find_in_path(name);
  if (!found) return fail(unavailable("cannot_start", fmt::format("cannot run {}: not found in PATH", name)));
  return found->string();
}

Error describe(const Failure& failure, const std::string& path, const ChildProcess::Options& options) {
  switch (failure.stage) {
    case Stage::kRedirect:
      return cannot_start(fmt::format("cannot redirect the output of {}", path), failure.number);
    case Stage::kIdentity:
      return cannot_start(fmt::format("cannot run {} as uid {}", path, options.run_as->uid), failure.number);
    case Stage::kDirectory:
      return cannot_start(fmt::format("cannot run {} in {}", path, options.cwd.string()), failure.number);
    case Stage::kExec:
      return cannot_start(fmt::format("cannot run {}", path), failure.number);
  }
  std::unreachable();
}

// Blocks all signals during the fork: no handler of the parent may run in the child before the child has reset them.
pid_t fork_quietly(const Plan& plan) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  if (pid == 0) run_child(plan);
  const int number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = number;
  return pid;
}

// Returns nullopt when the program runs: a successful exec closes the pipe without writing to it.
std::optional<Failure> read_report(int fd) {
  Failure failure{};
  ssize_t got = 0;
  do {
    got = ::read(fd, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof failure)) return failure;
  return std::nullopt;
}

int poll_timeout_ms(std::optional<steady_clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, INT_MAX));
}

std::optional<Credentials> credentials_of(const passwd* entry) {
  if (entry == nullptr) return std::nullopt;
  Credentials who{entry->pw_uid, entry->pw_gid, std::vector<gid_t>(64)};
  int count = static_cast<int>(who.groups.size());
  while (::getgrouplist(entry->pw_name, entry->pw_gid, who.groups.data(), &count) < 0) {
    who.groups.resize(static_cast<std::size_t>(count));
  }
  who.groups.resize(static_cast<std::size_t>(count));
  return who;
}

}  // namespace

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

std::string ExitStatus::to_string() const {
  if (signal != 0) return fmt::format("was ended by {}", signal_name(signal));
  return code == kUnknownCode ? "ended with an unknown exit code" : fmt::format("exited with code {}", code);
}

std::optional<Credentials> Credentials::of_user(const std::string& name) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return credentials_of(found);
}

std::optional<Credentials> Credentials::of_uid(uid_t uid) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found);
  return credentials_of(found);
}

std::optional<std::filesystem::path> find_in_path(const std::string& program) {
  const char* variable = ::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    auto candidate = std::filesystem::absolute(std::filesystem::path(rest.substr(0, end)) / program);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

Result<ChildProcess> ChildProcess::start(const Options& options) {
  if (options.argv.empty()) return fail(internal("cannot_start", "argv is empty: name the program to run"));
  auto path = program_path(options.argv.front());
  if (!path) return fail(path.error());

  UniqueFd null = raise_fd(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
  auto out = open_output(options.out);
  if (!out) return fail(out.error());
  auto err = open_output(options.err);
  if (!err) return fail(err.error());
  auto report = make_pipe();
  if (!report) return fail(report.error());

  const auto argv = c_array(options.argv);
  const auto env = options.env ? c_array(*options.env) : std::vector<char*>{};
  Plan plan{.path = path->c_str(),
            .argv = argv.data(),
            .env = options.env ? env.data() : ::environ,
            .cwd = options.cwd.empty() ? nullptr : options.cwd.c_str(),
            .stdio = {null.get(), out->target.get(), err->target.get()},
            .run_as = options.run_as ? &*options.run_as : nullptr,
            .own_group = options.own_group,
            .death_signal = options.death_signal,
            .parent = ::getpid(),
            .report = report->writer.get()};
  if (options.err.kind == Output::Kind::kSameAsOut) plan.stdio[2] = out->target ? out->target.get() : STDOUT_FILENO;

  const pid_t pid = fork_quietly(plan);
  if (pid < 0) return fail(cannot_start(fmt::format("cannot run {}", *path), errno));
  report->writer.reset();
  ChildProcess child(pid, open_pidfd(pid), std::move(out->reader), std::move(err->reader), options.own_group);
  if (!child.pidfd_) {
    const int number = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return fail(cannot_start("cannot watch a child process (pidfd_open)", number));
  }
  if (const auto failure = read_report(report->reader.get())) {
    child.wait_blocking();
    return fail(describe(*failure, *path, options));
  }
  return child;
}

ChildProcess::ChildProcess(pid_t pid, UniqueFd pidfd, UniqueFd out, UniqueFd err, bool own_group)
    : pid_(pid), pidfd_(std::move(pidfd)), out_(std::move(out)), err_(std::move(err)), own_group_(own_group) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  kill_and_reap();
  pid_ = other.pid_;
  pidfd_ = std::move(other.pidfd_);
  out_ = std::move(other.out_);
  err_ = std::move(other.err_);
  own_group_ = other.own_group_;
  status_ = other.status_;
  return *this;
}

ChildProcess::~ChildProcess() {
  kill_and_reap();
}

void ChildProcess::kill_and_reap() {
  if (!pidfd_ || status_) return;
  if (!signal_group(SIGKILL)) signal(SIGKILL);
  wait_blocking();
}

std::optional<ExitStatus> ChildProcess::status() {
  if (status_) return status_;
  siginfo_t info{};
  if (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED | WNOHANG) != 0) {
    // Other code of this process has reaped the child, or ignores SIGCHLD: the exit code is lost.
    if (errno == ECHILD) status_ = ExitStatus{kUnknownCode, 0};
  } else if (info.si_pid != 0) {
    status_ = info.si_code == CLD_EXITED ? ExitStatus{info.si_status, 0} : ExitStatus{0, info.si_status};
  }
  return status_;
}

bool ChildProcess::signal(int number) {
  return !status_ && send_signal(pidfd_, number);
}

bool ChildProcess::signal_group(int number) {
  // The kernel cannot reuse the pid, which is also the group's id, before the child is reaped.
  return own_group_ && !status_ && ::kill(-pid_, number) == 0;
}

std::optional<ExitStatus> ChildProcess::wait_blocking_until(steady_clock::time_point deadline) {
  while (!status()) {
    if (steady_clock::now() >= deadline) return std::nullopt;
    pollfd watch{pidfd_.get(), POLLIN, 0};
    ::poll(&watch, 1, poll_timeout_ms(deadline));
  }
  return status_;
}

ExitStatus ChildProcess::wait_blocking() {
  while (!status()) {
    pollfd watch{pidfd_.get(), POLLIN, 0};
    ::poll(&watch, 1, -1);
  }
  return *status_;
}

ExitStatus ChildProcess::stop_blocking(const StopPlan& plan) {
  const auto begin = steady_clock::now();
  for (const auto& step : plan) {
    if (const auto ended = wait_blocking_until(begin + step.after)) return *ended;
    signal(step.signal);
  }
  return wait_blocking();
}

awaitable<ExitStatus> ChildProcess::wait() {
  auto ended = co_await wait_until(steady_clock::time_point::max());
  co_return *ended;
}

awaitable<std::optional<ExitStatus>> ChildProcess::wait_until(steady_clock::time_point deadline) {
  if (status()) co_return status_;
  auto executor = co_await asio::this_coro::executor;
  // A duplicate, so that several coroutines may wait; shared with the timer, which may fire after this returns.
  auto watch = std::make_shared<asio::posix::stream_descriptor>(executor, ::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 3));
  auto timed_out = std::make_shared<bool>(false);
  asio::steady_timer timer(executor, deadline);
  timer.async_wait([watch, timed_out](const boost::system::error_code& ec) {
    if (ec) return;
    *timed_out = true;
    watch->cancel();
  });
  auto [ec] = co_await watch->async_wait(asio::posix::stream_descriptor::wait_read, use_tuple);
  timer.cancel();
  if (ec && !*timed_out) throw boost::system::system_error(ec, "waiting for a child process");
  co_return status();
}

awaitable<ExitStatus> ChildProcess::stop(StopPlan plan) {
  const auto begin = steady_clock::now();
  for (const auto& step : plan) {
    auto ended = co_await wait_until(begin + step.after);
    if (ended) co_return *ended;
    signal(step.signal);
  }
  co_return co_await wait();
}

awaitable<> for_each_line(UniqueFd from, std::function<void(std::string_view)> on_line, std::size_t max_line) {
  auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor stream(executor, from.release());
  std::string pending;
  std::array<char, 4096> chunk;
  for (;;) {
    auto [ec, size] = co_await stream.async_read_some(asio::buffer(chunk), use_tuple);
    pending.append(chunk.data(), size);
    std::size_t begin = 0;
    for (auto end = pending.find('\n'); end != std::string::npos; end = pending.find('\n', begin)) {
      on_line(std::string_view(pending).substr(begin, end - begin));
      begin = end + 1;
    }
    pending.erase(0, begin);
    if (pending.size() >= max_line || (ec && !pending.empty())) {
      on_line(pending);
      pending.clear();
    }
    if (ec == asio::error::operation_aborted) throw boost::system::system_error(ec);
    if (ec) co_return;
  }
}

}  // namespace fencepost
