#include "tests/support/cast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "tests/support/process.hpp"
#include "tests/support/source_dir.hpp"

namespace fencepost::test {

namespace fs = std::filesystem;

fs::path cast_program() {
#if defined(__aarch64__)
  constexpr auto kPackage = "cast-linux-arm64";
#else
  constexpr auto kPackage = "cast-linux-amd64";
#endif
  auto native = source_dir() / "node_modules/@foundry-rs" / kPackage / "bin/cast";
  if (fs::exists(native)) return native;
  if (auto found = find_in_path("cast")) return *found;
  throw Exception(unavailable("cast_missing", "cast is not installed; run ./fp setup"));
}

std::string cast(std::vector<std::string> arguments) {
  static const auto program = cast_program();
  std::vector<std::string> argv{program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const auto done = run_command(std::move(argv), {"HOME=/nonexistent", "NO_COLOR=1"});
  if (!done.status.success()) {
    throw Exception(internal("cast_failed", fmt::format("cast {} {}:\n{}{}", fmt::join(arguments, " "),
                                                        done.status.to_string(), done.out, done.err)));
  }
  auto out = done.out;
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

}  // namespace fencepost::test
