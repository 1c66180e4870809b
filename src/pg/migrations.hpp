// The schema, in numbered steps that are part of the program.
//
// db/migrations/NNNN_what.sql are compiled in. Each is applied once, in order, in a transaction of its own
// together with the row that remembers it, under an advisory lock: ten nodes may start at once. An applied
// migration is history: editing it is an error, found by checksum.
#pragma once

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

// Those of this program, in order. Throws if two have the same number or a name does not start with one.
const std::vector<Migration>& embedded_migrations();

// Applies what is missing and returns the names of what it applied. Fails, with nothing changed, with
// `migration_edited`, `migration_missing` (a gap in what is applied) or `database_newer` (applied by a later
// version of the program). A migration that fails throws its QueryError; those before it stay applied.
awaitable<Result<std::vector<std::string>>> migrate(Connector& connector, std::span<const Migration> migrations);

// Whether the database is exactly as far as `migrations`: nothing, or the error to show (`migrations_pending` or
// one of the above). Never changes anything.
awaitable<Result<void>> check_migrations(Pool& pool, std::span<const Migration> migrations);

}  // namespace fencepost::pg
