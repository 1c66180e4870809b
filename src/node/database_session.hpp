// A short-lived database pool for a command.
#pragma once

#include <exception>
#include <utility>

#include "pg/connection.hpp"
#include "pg/pool.hpp"
#include "runtime/runtime.hpp"

#include "config/config.hpp"

namespace fencepost {

inline pg::ConnectOptions session_options(const Config& config) {
  return {.dsn = config.database.dsn,
          .application_name = "fencepost command",
          .connect_timeout = config.database.connect_timeout,
          .statement_timeout = config.database.statement_timeout};
}

template <class Body>
auto run_with_pool(pg::Connector& connector, Metrics& metrics, Body body) -> std::invoke_result_t<Body&, pg::Pool&> {
  const auto executor = co_await this_executor();
  {
    // The pool retries until its callers give up. A command fails at once, with the cause.
    auto session = co_await connector.connect(executor);
    const pg::OwnedConnection probe(std::move(session), {});
  }
  pg::Pool pool(executor, connector, {.exclusive_connections = 1}, metrics);
  pool.start();
  using Value = typename std::invoke_result_t<Body&, pg::Pool&>::value_type;
  std::expected<Value, std::exception_ptr> outcome = std::unexpected(nullptr);
  try {
    outcome = co_await body(pool);
  } catch (const std::exception&) {
    outcome = std::unexpected(std::current_exception());
  }
  co_await pool.stop(std::chrono::milliseconds(1000));
  if (!outcome) std::rethrow_exception(outcome.error());
  co_return std::move(*outcome);
}

// Runs `body(pool)`, which returns an awaitable of a value, to its end and returns the value. Blocks the calling
// thread. Throws what `body` throws, and ConnectionLost with the cause if the database cannot be reached.
template <class Body>
auto with_database(const Config& config, Body body) {
  Metrics metrics;
  pg::Connector connector(session_options(config));
  return run_blocking(run_with_pool(connector, metrics, std::move(body)));
}

}  // namespace fencepost
