#include "tests/support/terminal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/support/process.hpp"

namespace fencepost::test {
namespace {

using std::chrono::steady_clock;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (auto& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

Terminal::Terminal(std::vector<std::string> argv, const std::vector<std::string>& env, unsigned short columns) {
  auto environment = environment_with(env);
  // Built before the fork: after it, only async-signal-safe functions may be called.
  const auto arguments = pointers(argv);
  const auto variables = pointers(environment);
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int fd = -1;
  pid_ = ::forkpty(&fd, nullptr, nullptr, &size);
  if (pid_ < 0) throw Exception(internal("no_terminal", std::generic_category().message(errno)));
  if (pid_ == 0) {
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  side_ = UniqueFd(fd);
}

Terminal::~Terminal() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Terminal::read_more(steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
  pollfd watch{side_.get(), POLLIN, 0};
  if (left.count() <= 0 || ::poll(&watch, 1, static_cast<int>(left.count())) <= 0) return false;
  std::array<char, 4096> chunk;
  const auto got = ::read(side_.get(), chunk.data(), chunk.size());  // EIO when no process has the other side open
  if (got > 0) screen_.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool Terminal::shows(std::string_view text, std::chrono::milliseconds patience) {
  const auto deadline = steady_clock::now() + patience;
  while (true) {
    if (const auto at = screen_.find(text, found_); at != std::string::npos) {
      found_ = at + text.size();
      return true;
    }
    if (!read_more(deadline)) return false;
  }
}

void Terminal::type(std::string_view text) const {
  if (::write(side_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw Exception(internal("terminal_closed", "the program does not read its input any more"));
  }
}

std::size_t Terminal::widest_line() const {
  std::size_t widest = 0;
  std::size_t columns = 0;
  for (std::size_t at = 0; at < screen_.size(); ++at) {
    const char c = screen_[at];
    if (c == '\x1b') {
      at = std::min(screen_.find_first_of("mK", at), screen_.size());
    } else if (c == '\r' || c == '\n') {
      columns = 0;
    } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
      widest = std::max(widest, ++columns);
    }
  }
  return widest;
}

int Terminal::end() {
  const auto deadline = steady_clock::now() + std::chrono::minutes(1);
  while (read_more(deadline)) {
  }
  if (steady_clock::now() >= deadline)
    throw Exception(internal("command_too_slow", "the program still runs; its output:\n" + screen_));
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace fencepost::test
