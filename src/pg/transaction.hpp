// A transaction of several round trips, for statements that depend on the result of an earlier one. Otherwise use a
// Batch: it takes one round trip and no exclusive connection.
//
//   auto nonce = co_await pg::transaction(pool, [&](pg::Transaction& tx) -> awaitable<std::int64_t> {
//     const auto row = co_await tx.query(kLockCursor, signer);
//     …
//   });
//
// The body may run several times (deadlock, serialization failure), so it must have no effect outside the transaction.
// After a QueryError the transaction cannot commit: if the body swallows the error, the caller gets
// `transaction_aborted`. When the caller is cancelled, the session is closed and the server rolls back.
#pragma once

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "pg/error.hpp"
#include "pg/pool.hpp"

namespace fencepost::pg {

enum class Isolation { kReadCommitted, kRepeatableRead, kSerializable };

class Transaction {
 public:
  Transaction(Connection& connection, Isolation isolation) : connection_(connection), isolation_(isolation) {}

  // One round trip; BEGIN is sent with the first. A batch's timeouts apply until the end of the transaction.
  awaitable<std::vector<ResultSet>> run(Batch batch);

  template <class... Values>
  awaitable<ResultSet> query(const Statement& statement, const Values&... values) {
    return run_one(Batch().add(statement, values...));
  }

  awaitable<> commit();    // throws CommitUnknown when the answer is lost
  awaitable<> rollback();  // valid also after an error

 private:
  awaitable<ResultSet> run_one(Batch batch);

  Connection& connection_;
  Isolation isolation_;
  bool begun_ = false;
};

// Rolls back a failed attempt; returns whether to retry. Used by `transaction`.
awaitable<bool> clean_up_and_retry(Pool& pool, BorrowedConnection& borrowed, Transaction& tx,
                                   std::exception_ptr failure, int attempt);

template <class Body>
auto transaction(Pool& pool, Body body, Isolation isolation = Isolation::kReadCommitted)
    -> std::invoke_result_t<Body&, Transaction&> {
  using Value = typename std::invoke_result_t<Body&, Transaction&>::value_type;
  auto borrowed = co_await pool.acquire();
  for (int attempt = 1;; ++attempt) {
    Transaction tx(*borrowed, isolation);
    std::exception_ptr failure;
    try {
      if constexpr (std::is_void_v<Value>) {
        co_await body(tx);
        co_await tx.commit();
        co_return;
      } else {
        Value value = co_await body(tx);
        co_await tx.commit();
        co_return value;
      }
    } catch (const std::exception&) {
      failure = std::current_exception();
    }
    if (!co_await clean_up_and_retry(pool, borrowed, tx, failure, attempt)) std::rethrow_exception(failure);
  }
}

}  // namespace fencepost::pg
