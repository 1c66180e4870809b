// The database schema, as numbered migrations that are part of the program.
//
// The build compiles in db/migrations/NNNN_what.sql. Each migration is applied once, in order, together with the row
// that records it. All that are missing are one transaction: nodes of the version before never meet half of an upgrade.
// An advisory lock allows many nodes to start at once. An applied migration must not be edited: a checksum detects the
// change.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "pg/connector.hpp"
#include "pg/pool.hpp"
#include "runtime/async.hpp"

namespace fencepost::pg {

struct Migration {
  Migration(int number, std::string what, std::string_view text);

  int version;
  std::string name;  // "0001_api_key"
  std::string_view sql;
  std::string checksum;  // SHA-256 in hex
};

// The migrations of this program, in order. Throws if two have the same number or a name does not start with a number.
const std::vector<Migration>& embedded_migrations();

// Applies the missing migrations and returns their names. Fails, without any change, with `migration_edited`,
// `migration_missing` (a gap in the applied ones) or `database_newer` (a later version of the program applied more). A
// migration that fails throws its QueryError, and nothing is applied. Tables that are in use are waited for, up to
// `patience`, while other sessions go on using them; then it fails with `database_busy`.
awaitable<Result<std::vector<std::string>>> migrate(Connector& connector, std::span<const Migration> migrations,
                                                    std::chrono::milliseconds patience = std::chrono::minutes(2));

// Succeeds when exactly `migrations` are applied; otherwise fails with `migrations_pending` or one of the errors above.
// Never changes the database.
awaitable<Result<void>> check_migrations(Pool& pool, std::span<const Migration> migrations);

}  // namespace fencepost::pg
