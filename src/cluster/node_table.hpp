// Reads the tables of nodes on a connection of its own: a psql session that locks one of them (LOCK TABLE, a long
// migration) must not hold up the other queries of a loop, which share a connection.
#pragma once

#include <chrono>

#include "pg/batch.hpp"
#include "pg/error.hpp"
#include "pg/pool.hpp"

namespace fencepost::cluster {

inline constexpr std::chrono::milliseconds kNodeTablePatience{500};

// Throws as Connection::run does, after a second try if the connection was lost; a lock that is not released in time is
// kUnavailable.
template <class... Args>
awaitable<pg::ResultSet> read_nodes(pg::Pool& pool, const pg::Statement& statement, Args... args) {
  pg::Batch batch;
  batch.add(statement, args...).lock_timeout(kNodeTablePatience);
  for (bool again = false;; again = true) {
    try {
      const auto connection = co_await pool.acquire();
      auto results = co_await connection->run(batch, {.access = pg::Access::kRead});
      co_return std::move(results.front());
    } catch (const pg::ConnectionLost&) {
      if (again) throw;
    }
  }
}

}  // namespace fencepost::cluster
