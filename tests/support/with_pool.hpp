// Runs a test's coroutine on a loop that has a connected pool, and stops the pool afterwards.
//
//   with_pool(db.dsn(), {}, [](pg::Pool& pool) -> awaitable<> { … });
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "pg/connector.hpp"
#include "pg/pool.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::test {

inline pg::ConnectOptions connect_options(const std::string& dsn) {
  return {.dsn = Secret(dsn), .application_name = "test", .connect_timeout = std::chrono::seconds(5)};
}

template <class Body>
awaitable<> run_with_pool(pg::Connector& connector, pg::PoolOptions options, Metrics& metrics, Body body) {
  const auto executor = co_await this_executor();
  pg::Pool pool(executor, connector, options, metrics);
  pool.start();
  std::exception_ptr failure;
  try {
    co_await body(pool);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  co_await pool.stop(std::chrono::milliseconds(2000));
  if (failure) std::rethrow_exception(failure);
}

// How a call ended: "ok" or the code of its error.
template <class T>
awaitable<std::string> code_of(awaitable<T> call) {
  try {
    co_await std::move(call);
  } catch (const Exception& e) {
    co_return e.error().code;
  }
  co_return std::string("ok");
}

template <class Body>
void with_pool(const std::string& dsn, const pg::PoolOptions& options, Body body) {
  Metrics metrics;
  pg::Connector connector(connect_options(dsn));
  run_blocking(run_with_pool(connector, options, metrics, std::move(body)));
}

}  // namespace fencepost::test
