// The database as the rest of the program sees it: one pool per loop, and the way to the pool of one's own.
//
//   const auto rows = co_await db.pool().query(kFind, id);
#pragma once

#include <memory>
#include <vector>

#include "pg/pool.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::pg {

class Database {
 public:
  Database(Runtime& runtime, ConnectOptions connect, const PoolOptions& pool, Metrics& metrics);

  // From a loop's thread, both.
  awaitable<> start();
  awaitable<> stop(std::chrono::milliseconds grace);

  // The pool of the loop that the caller runs on.
  Pool& pool() { return *pools_[Runtime::current()]; }
  // Of that loop, for whoever is pinned to it.
  Pool& pool_of(std::size_t loop) { return *pools_[loop]; }
  Connector& connector() { return connector_; }

 private:
  Runtime& runtime_;
  Connector connector_;
  std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace fencepost::pg
