// Brings a database to the schema of an earlier version, and from there to a later one.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "base/error.hpp"
#include "pg/migrations.hpp"
#include "runtime/runtime.hpp"
#include "tests/support/with_pool.hpp"

namespace fencepost::test {

// Applies the missing migrations up to and including number `version`. Throws if one fails.
inline void migrate_to(const std::string& dsn, int version) {
  const auto& all = pg::embedded_migrations();
  const auto end = std::ranges::upper_bound(all, version, {}, &pg::Migration::version);
  pg::Connector connector(connect_options(dsn));
  const auto applied = run_blocking(pg::migrate(connector, std::span(all.begin(), end)));
  if (!applied) throw Exception(applied.error());
}

}  // namespace fencepost::test
