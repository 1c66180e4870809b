#include "dev/dev_key.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/random.hpp"
#include "identity/api_key_store.hpp"
#include "runtime/private_file.hpp"

namespace fencepost {
namespace {

const identity::KeyRequest kDevKey{.label = "dev key of fencepost up", .scopes = {"admin"}};

}  // namespace

Result<Secret> read_or_make_dev_key(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  if (in && std::getline(in, line) && identity::parse_key(line)) return Secret::take(std::move(line));
  SystemClock clock;
  SystemRandom random;
  UuidGenerator ids(clock, random);
  auto made = identity::make_key(kDevKey, ids.next(), random);
  if (!made) return fail(made.error());
  if (auto written = write_private_file(file, fmt::format("{}\n", made->text.reveal())); !written) {
    return fail(written.error());
  }
  return std::move(made->text);
}

awaitable<> ensure_dev_key(pg::Pool& pool, const Secret& text) {
  const auto presented = identity::parse_key(text.reveal());
  if (!presented) throw Exception(presented.error());
  identity::ApiKeyStore store(pool);
  const auto known = co_await store.find(presented->key_id);
  if (known) {
    const auto usable = identity::check_key(*known, *presented, SystemClock().now());
    if (usable) co_return;
    throw Exception(
        conflict("dev_key_useless",
                 fmt::format("{}; delete dev-api-key in the data directory and start again", usable.error().message)));
  }
  identity::ApiKey key;
  key.key_id = presented->key_id;
  key.label = kDevKey.label;
  key.secret_hash = sha256(presented->secret.reveal());
  key.scopes = kDevKey.scopes;
  co_await store.insert(key);
}

}  // namespace fencepost
