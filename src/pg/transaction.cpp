#include "pg/transaction.hpp"

#include "base/backoff.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;

constexpr Statement kBegin{"fp_begin", "BEGIN"};
constexpr Statement kBeginRepeatableRead{"fp_begin_repeatable_read", "BEGIN ISOLATION LEVEL REPEATABLE READ"};
constexpr Statement kBeginSerializable{"fp_begin_serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE"};
constexpr Statement kCommit{"fp_commit", "COMMIT"};
constexpr Statement kRollback{"fp_rollback", "ROLLBACK"};

const Statement& begin_statement(Isolation isolation) {
  switch (isolation) {
    case Isolation::kReadCommitted:
      return kBegin;
    case Isolation::kRepeatableRead:
      return kBeginRepeatableRead;
    case Isolation::kSerializable:
      return kBeginSerializable;
  }
  std::unreachable();
}

}  // namespace

awaitable<std::vector<ResultSet>> Transaction::run(Batch batch) {
  if (!begun_) batch.prologue(begin_statement(isolation_));
  begun_ = true;
  // Nothing is committed before commit(), so a connection lost here leaves no unknown outcome.
  co_return co_await connection_.run(batch, {.access = Access::kRead});
}

awaitable<ResultSet> Transaction::run_one(Batch batch) {
  auto results = co_await run(std::move(batch));
  co_return std::move(results.front());
}

awaitable<> Transaction::commit() {
  if (!begun_) co_return;
  Batch batch;
  batch.add(kCommit);
  const auto results = co_await connection_.run(batch, {.access = Access::kWrite});
  // PostgreSQL answers COMMIT of a failed transaction with ROLLBACK: the body has swallowed an error.
  if (results.front().command() != "COMMIT") {
    throw Exception(internal("transaction_aborted", "a statement failed and the body ignored its error: rolled back"));
  }
}

awaitable<> Transaction::rollback() {
  if (!begun_) co_return;
  Batch batch;
  batch.add(kRollback);
  co_await connection_.run(batch, {.access = Access::kRead});
}

awaitable<bool> clean_up_and_retry(Pool& pool, BorrowedConnection& borrowed, Transaction& tx,
                                   std::exception_ptr failure, int attempt) {
  bool retry = false;
  bool clean = false;
  try {
    std::rethrow_exception(failure);
  } catch (const QueryError& e) {
    retry = e.is_retryable() && attempt < pool.options().max_attempts;
    clean = true;
  } catch (const Exception& e) {
    // The body threw Fencepost's own error. An open session can be rolled back; a lost one cannot.
    clean = borrowed->is_open();
  } catch (const std::exception&) {
    clean = false;  // a bug in the body: the session still has its transaction open, so the pool closes it
  }
  if (clean) {
    try {
      co_await tx.rollback();
    } catch (const ConnectionLost&) {
      retry = false;  // the server rolls back by itself; the caller gets the first failure
    }
  }
  if (retry) {
    Backoff backoff({.initial = 5ms, .cap = 250ms}, pool.random());
    for (int i = 1; i < attempt; ++i) backoff.next();
    asio::steady_timer pause(pool.executor(), backoff.next());
    co_await pause.async_wait(asio::use_awaitable);
  }
  co_return retry;
}

}  // namespace fencepost::pg
