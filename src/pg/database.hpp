// The database for the other modules: one pool per loop, and access to the pool of the caller's loop.
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

  // Call both on a loop's thread.
  awaitable<> start();
  awaitable<> stop(std::chrono::milliseconds grace);

  // The pool of the loop that the caller runs on.
  Pool& pool() { return *pools_[Runtime::current()]; }
  // The pool of the given loop, for components that are pinned to it.
  Pool& pool_of(std::size_t loop) { return *pools_[loop]; }
  Connector& connector() { return connector_; }

 private:
  Runtime& runtime_;
  Connector connector_;
  std::vector<std::unique_ptr<Pool>> pools_;
};

}  // namespace fencepost::pg
