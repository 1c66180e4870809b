#include "tests/support/process.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "base/error.hpp"

namespace fencepost::test {
namespace {

using std::chrono::steady_clock;

// False at the end of the stream.
bool read_some(const UniqueFd& from, std::string& into) {
  std::array<char, 65536> chunk;
  const auto got = ::read(from.get(), chunk.data(), chunk.size());
  if (got > 0) into.append(chunk.data(), static_cast<std::size_t>(got));
  return got > 0;
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<std::string>& changes) {
  std::vector<std::string> all = changes;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const auto name = pair.substr(0, pair.find('=') + 1);
    if (std::ranges::none_of(changes, [&](const auto& c) { return c.starts_with(name); })) all.emplace_back(pair);
  }
  return all;
}

Finished run_command(std::vector<std::string> argv, const std::vector<std::string>& env,
                     std::chrono::milliseconds patience) {
  const auto name = argv.at(0);
  auto child = ChildProcess::start(
      {.argv = std::move(argv), .env = environment_with(env), .out = Output::pipe(), .err = Output::pipe()});
  if (!child) throw Exception(child.error());
  UniqueFd out = child->take_out();
  UniqueFd err = child->take_err();
  Finished finished;
  const auto deadline = steady_clock::now() + patience;
  while (out || err || child->running()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) {
      child->signal_group(SIGKILL);
      throw Exception(internal("command_too_slow", fmt::format("{} took longer than {} ms; its output:\n{}{}", name,
                                                               patience.count(), finished.out, finished.err)));
    }
    // poll skips a descriptor of -1.
    std::array<pollfd, 3> watch{
        {{out.get(), POLLIN, 0}, {err.get(), POLLIN, 0}, {out || err ? -1 : child->pidfd(), POLLIN, 0}}};
    ::poll(watch.data(), watch.size(), static_cast<int>(left.count()));
    if (watch[0].revents != 0 && !read_some(out, finished.out)) out.reset();
    if (watch[1].revents != 0 && !read_some(err, finished.err)) err.reset();
  }
  finished.status = *child->status();
  return finished;
}

}  // namespace fencepost::test
