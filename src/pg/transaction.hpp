// A transaction of several round trips, for when a statement depends on what an earlier one returned. Where it
// does not, use a Batch: it costs one round trip and no exclusive connection.
//
//   auto nonce = co_await pg::transaction(pool, [&](pg::Transaction& tx) -> awaitable<std::int64_t> {
//     const auto row = co_await tx.query(kLockCursor, signer);
//     …
//   });
//
// The body may run several times (deadlock, serialization failure): it must not touch the outside world. After a
// QueryError the transaction is lost: a body that swallows one gets `transaction_aborted` instead of a commit. When
// the caller is cancelled, the session ends with whatever it had open.
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

  // One round trip; BEGIN rides along with the first. A batch's timeouts hold from there to the transaction's end.
  awaitable<std::vector<ResultSet>> run(Batch batch);

  template <class... Values>
  awaitable<ResultSet> query(const Statement& statement, const Values&... values) {
    return run_one(Batch().add(statement, values...));
  }

  awaitable<> commit();    // throws CommitUnknown when the answer is lost
  awaitable<> rollback();  // also after an error

 private:
  awaitable<ResultSet> run_one(Batch batch);

  Connection& connection_;
  Isolation isolation_;
  bool begun_ = false;
};

// What to do after a failed attempt; used by `transaction`.
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
