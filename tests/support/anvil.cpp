#include "tests/support/anvil.hpp"

#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The port in the line "Listening on 127.0.0.1:44281", which anvil prints once it listens; 0 before.
std::uint16_t announced_port(const std::string& log) {
  constexpr std::string_view kBefore = "Listening on 127.0.0.1:";
  const auto at = log.find(kBefore);
  std::uint16_t port = 0;
  if (at != std::string::npos && log.find('\n', at) != std::string::npos) {
    std::from_chars(log.data() + at + kBefore.size(), log.data() + log.size(), port);
  }
  return port;
}

}  // namespace

fs::path anvil_program() {
#if defined(__aarch64__)
  constexpr auto kPackage = "anvil-linux-arm64";
#else
  constexpr auto kPackage = "anvil-linux-amd64";
#endif
  auto native = source_dir() / "node_modules/@foundry-rs" / kPackage / "bin/anvil";
  if (fs::exists(native)) return native;
  if (auto found = find_in_path("anvil"); found && !read_all(*found).starts_with("#!")) return *found;
  throw Exception(unavailable("anvil_missing", "anvil is not installed; run ./fp setup"));
}

Anvil::Anvil(std::vector<std::string> options) {
  std::vector<std::string> argv{anvil_program(), "--host", "127.0.0.1", "--port", "0", "--prune-history", "32"};
  argv.insert(argv.end(), options.begin(), options.end());
  const auto log = dir_ / "anvil.log";
  auto child = ChildProcess::start({.argv = std::move(argv), .out = Output::file(log), .err = Output::same_as_out()});
  if (!child) throw Exception(child.error());
  child_ = std::move(*child);
  const bool up = eventually([&] {
    port_ = announced_port(read_all(log));
    return port_ != 0 || !child_->running();
  });
  if (!up || port_ == 0) throw Exception(unavailable("anvil_failed", "anvil does not start:\n" + read_all(log)));
}

Anvil::~Anvil() {
  child_->stop_blocking({{SIGTERM, 0s}, {SIGKILL, 5s}});
}

std::string Anvil::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void Anvil::kill() {
  child_->signal(SIGKILL);
  child_->wait_blocking();
}

}  // namespace fencepost::test
