#include "evm/keys/keystore_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "evm/address.hpp"
#include "runtime/private_file.hpp"

namespace fencepost::evm {
namespace {

namespace fs = std::filesystem;

Error cannot_read(const fs::path& path, const std::string& reason) {
  return invalid("cannot_read_keystore", fmt::format("cannot read {}: {}", path.string(), reason));
}

bool is_candidate(const fs::path& file) {
  const auto name = file.filename().string();
  return !name.starts_with('.') && !name.ends_with('~') && !name.ends_with(".new");
}

std::string file_name(TimePoint when, std::string_view digits) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(when);
  const auto nanos = std::chrono::nanoseconds(when - seconds).count();
  return fmt::format("UTC--{:%Y-%m-%dT%H-%M-%S}.{:09}Z--{}", fmt::gmtime(seconds.time_since_epoch().count()), nanos,
                     digits);
}

}  // namespace

Result<PrivateKey> read_keystore(const fs::path& file, const Secret& password) {
  std::error_code failure;
  if (!fs::is_regular_file(file, failure)) {
    return fail(cannot_read(file, failure ? failure.message() : "not a regular file"));
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) return fail(cannot_read(file, std::strerror(errno)));
  std::string text(kMaxKeystoreBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return fail(cannot_read(file, std::strerror(errno)));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return decrypt_keystore(text, password);
}

Result<fs::path> write_keystore(const fs::path& directory, const PrivateKey& key, const Secret& password,
                                const Clock& clock, Random& random, const KdfCost& cost) {
  std::error_code failure;
  if (!fs::exists(directory, failure)) {
    if (directory.has_parent_path()) fs::create_directories(directory.parent_path(), failure);
    if (::mkdir(directory.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
      return fail(
          internal("cannot_write", fmt::format("cannot create {}: {}", directory.string(), std::strerror(errno))));
    }
  }
  const auto digits = address_text(key.address()).substr(2);
  const auto there = keystore_files(directory);
  if (!there) return fail(there.error());
  const auto same = std::ranges::find_if(
      *there, [&](const fs::path& file) { return file.filename().string().ends_with("--" + digits); });
  if (same != there->end()) {
    return fail(conflict("keystore_exists", fmt::format("the key of 0x{} is already in {}", digits, same->string())));
  }
  auto file = directory / file_name(clock.now(), digits);
  if (auto written = write_private_file(file, encrypt_keystore(key, password, random, cost)); !written) {
    return fail(std::move(written).error());
  }
  return file;
}

Result<std::vector<fs::path>> keystore_files(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> files;
  fs::directory_iterator entry(directory, failure);
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown) && is_candidate(entry->path())) files.push_back(entry->path());
  }
  if (failure) return fail(cannot_read(directory, failure.message()));
  std::ranges::sort(files);
  return files;
}

}  // namespace fencepost::evm
