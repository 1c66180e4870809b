// with_postgres COMMAND [ARGUMENT…]
//
// Starts a private PostgreSQL, runs the command with FENCEPOST_TEST_CLUSTER set to it, and stops the server. Exits with
// the command's exit code. Passes SIGINT and SIGTERM on to the command and its children.
#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "pg/embedded_cluster.hpp"
#include "tests/support/temp_dir.hpp"

namespace {

using fencepost::ChildProcess;
using fencepost::ExitStatus;
using fencepost::Output;
using fencepost::UniqueFd;

// Blocks these signals and returns a descriptor to read them from: the server must be stopped before the exit.
UniqueFd catch_signals() {
  sigset_t caught;
  ::sigemptyset(&caught);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&caught, number);
  ::pthread_sigmask(SIG_BLOCK, &caught, nullptr);
  return UniqueFd(::signalfd(-1, &caught, SFD_CLOEXEC));
}

ExitStatus wait_passing_signals_on(ChildProcess& command, const UniqueFd& signals) {
  for (;;) {
    if (const auto ended = command.status()) return *ended;
    std::array<pollfd, 2> watch{{{command.pidfd(), POLLIN, 0}, {signals.get(), POLLIN, 0}}};
    ::poll(watch.data(), watch.size(), -1);
    signalfd_siginfo caught{};
    if ((watch[1].revents & POLLIN) != 0 && ::read(signals.get(), &caught, sizeof caught) == sizeof caught) {
      command.signal_group(static_cast<int>(caught.ssi_signo));
    }
  }
}

int run(std::vector<std::string> argv) {
  const UniqueFd signals = catch_signals();
  const fencepost::test::TempDir dir("postgres");
  auto cluster = fencepost::pg::EmbeddedCluster::start({.data_dir = dir / "pg", .durable = false});
  if (!cluster) {
    fmt::print(stderr, "with_postgres: {}\n", cluster.error().to_string());
    return 125;
  }
  ::setenv("FENCEPOST_TEST_CLUSTER", (*cluster)->dsn().c_str(), 1);
  auto command = ChildProcess::start(
      {.argv = std::move(argv), .out = Output::inherit(), .err = Output::inherit(), .death_signal = SIGTERM});
  if (!command) {
    fmt::print(stderr, "with_postgres: {}\n", command.error().to_string());
    return 127;
  }
  const auto ended = wait_passing_signals_on(*command, signals);
  return ended.signal != 0 ? 128 + ended.signal : ended.code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: with_postgres COMMAND [ARGUMENT…]\n");
    return 125;
  }
  return run({argv + 1, argv + argc});
}
