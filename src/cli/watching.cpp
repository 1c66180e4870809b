#include "cli/watching.hpp"

#include <csignal>

#include <fmt/format.h>
#include <unistd.h>

#include "base/text.hpp"

#include "cli/exit_code.hpp"
#include "cli/program_name.hpp"

namespace fencepost::cli {
namespace {

// For the signal handler, which may only call async-signal-safe functions: the text is ready before it is needed.
std::string farewell;

void say_farewell(int number) {
  // A failed write cannot be reported here.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, farewell.data(), farewell.size());
  // The default action, so that the shell sees that Ctrl-C ended the command, and ends a loop around it, too.
  ::signal(number, SIG_DFL);
  ::raise(number);
}

}  // namespace

std::string command_again(std::string_view words, const ApiFlags& flags) {
  auto out = fmt::format("{} {}", program_name(), words);
  if (!flags.url.empty()) out += " --url " + shell_word(flags.url);
  if (!flags.data_dir.empty()) out += " --data-dir " + shell_word(flags.data_dir);
  if (!flags.api_key.empty()) out += " --api-key …";
  return out;
}

Watching::Watching(std::string what, std::string command) : what_(std::move(what)), command_(std::move(command)) {
  const Error stopped{ErrorKind::kTimeout, "interrupted", text("Stopped watching"), {}, {}, {}};
  farewell = is_json_on_stderr() ? error_json(stopped, kExitInterrupted) + "\n" : "\n" + stopped.message + "\n";
  ::signal(SIGINT, say_farewell);
}

Watching::~Watching() {
  ::signal(SIGINT, SIG_DFL);
}

int Watching::timed_out() const {
  const Error passed{ErrorKind::kTimeout, "not_yet", text("The timeout passed"), {}, {}, {}};
  fmt::print(stderr, "{}\n", is_json_on_stderr() ? error_json(passed, kExitNotYet) : passed.message);
  return kExitNotYet;
}

std::string Watching::text(std::string_view begin) const {
  return fmt::format("{}; {} goes on. Look again:\n  {}", begin, what_, command_);
}

}  // namespace fencepost::cli
