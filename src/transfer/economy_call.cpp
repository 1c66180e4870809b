#include "transfer/economy_call.hpp"

namespace fencepost::transfer {

awaitable<pg::ResultSet> run_batch(pg::Pool& pool, pg::Batch batch) {
  const auto connection = co_await pool.acquire();
  for (int attempt = 1;; ++attempt) {
    try {
      auto results = co_await connection->run(batch);
      co_return std::move(results.back());
    } catch (const pg::QueryError& error) {
      if (!error.is_retryable() || attempt >= pool.options().max_attempts) throw;
    }
  }
}

}  // namespace fencepost::transfer
