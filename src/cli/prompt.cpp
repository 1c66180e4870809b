#include "cli/prompt.hpp"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include "base/text.hpp"
#include "runtime/unique_fd.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kMaxBytes = 64 << 10;

// Turns echo off and restores the terminal at the end, also if the question is never answered.
class WithoutEcho {
 public:
  explicit WithoutEcho(int fd) : fd_(fd), changed_(::tcgetattr(fd, &before_) == 0) {
    if (!changed_) return;
    auto quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    changed_ = ::tcsetattr(fd, TCSAFLUSH, &quiet) == 0;
  }
  ~WithoutEcho() {
    if (changed_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
  }
  WithoutEcho(const WithoutEcho&) = delete;
  WithoutEcho& operator=(const WithoutEcho&) = delete;

  bool active() const { return changed_; }

 private:
  int fd_;
  termios before_{};
  bool changed_;
};

// Reads to the end of the input or, on a terminal, of the line. The buffer never grows, so no copy of the secret stays
// in freed memory.
Result<Secret> read_up_to(int fd, bool one_line) {
  std::string text;
  text.reserve(kMaxBytes + 1);
  while (text.size() <= kMaxBytes) {
    char c = 0;
    const auto got = ::read(fd, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      auto reason = std::generic_category().message(errno);
      Secret::take(std::move(text));
      return fail(invalid("cannot_read_secret", std::move(reason)));
    }
    if (got == 0 || (one_line && c == '\n')) break;
    text += c;
  }
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  const char* reason = text.size() > kMaxBytes                           ? "it is too long"
                       : text.empty()                                    ? "it is empty"
                       : text.find_first_of("\r\n") != std::string::npos ? "it has more than one line"
                                                                         : nullptr;
  auto secret = Secret::take(std::move(text));
  if (reason != nullptr) return fail(invalid("cannot_read_secret", reason));
  return secret;
}

}  // namespace

Result<Secret> ask_secret(std::string_view question) {
  const UniqueFd terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (terminal.get() < 0) return fail(invalid("no_terminal", "no terminal to ask for the secret on"));
  const WithoutEcho quiet(terminal.get());
  if (!quiet.active())
    return fail(invalid("no_terminal", "cannot turn off the terminal's echo, so the secret would be visible"));
  ::dprintf(terminal.get(), "%.*s: ", static_cast<int>(question.size()), question.data());
  auto answer = read_up_to(terminal.get(), true);
  ::dprintf(terminal.get(), "\n");
  return answer;
}

Result<Secret> read_secret_line(const std::string& file) {
  const UniqueFd opened(file == "-" ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const auto name = file == "-" ? std::string("standard input") : quote(file, 256);
  auto secret = opened.get() < 0
                    ? Result<Secret>(fail(invalid("cannot_read_secret", std::generic_category().message(errno))))
                    : read_up_to(opened.get(), false);
  if (!secret) secret.error().message = fmt::format("cannot read {}: {}", name, secret.error().message);
  return secret;
}

}  // namespace fencepost::cli
