#include "tests/support/typescript_client.hpp"

#include <stdexcept>

#include "runtime/read_file.hpp"
#include "tests/support/fencepost.hpp"
#include "tests/support/process.hpp"

namespace fencepost::test {
namespace {

namespace fs = std::filesystem;

ChildProcess start(std::vector<std::string> argv, const fs::path& output, const std::vector<std::string>& env) {
  auto child = ChildProcess::start({.argv = std::move(argv),
                                    .env = environment_with(env),
                                    .out = Output::file(output),
                                    .err = Output::same_as_out()});
  if (!child) throw Exception(child.error());
  return std::move(*child);
}

}  // namespace

fs::path client_package() {
  return fs::path(fencepost_program()).parent_path() / "fencepost-client.tgz";
}

fs::path install_client(const fs::path& dir) {
  const auto installed = dir / "node_modules/@fencepost/client";
  fs::create_directories(installed);
  const auto done =
      run_command({"tar", "-xzf", client_package().string(), "-C", installed.string(), "--strip-components", "1"});
  if (!done.status.success()) {
    throw std::runtime_error(
        "the package of the client is made by ctest, by the test client_typescript.npm_packs_it: " + done.err);
  }
  return installed;
}

RunningProgram::RunningProgram(std::vector<std::string> argv, fs::path output, const std::vector<std::string>& env)
    : output_(std::move(output)), child_(start(std::move(argv), output_, env)) {}

std::string RunningProgram::output() const {
  return read_file(output_);
}

ExitStatus RunningProgram::wait(std::chrono::milliseconds patience) {
  const auto ended = child_.wait_blocking_until(std::chrono::steady_clock::now() + patience);
  if (!ended) throw std::runtime_error("it still runs; its output so far: " + output());
  return *ended;
}

ExitStatus RunningProgram::signal(int number) {
  child_.signal(number);
  return wait();
}

}  // namespace fencepost::test
