// The database sessions of one loop, and the queues of callers that wait for them.
//
// There are two kinds. Shared connections carry the short batches of all coroutines of the loop, pipelined. Exclusive
// connections are lent to a coroutine that needs several round trips in one transaction, or whose statement may be slow
// and would delay the batches behind it.
//
// Everything is bounded: the batches in flight on a connection, the callers in the queue, the time they wait.
// Lost connections are reopened with backoff. Pinned to one loop: call every method on its thread.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "pg/batch.hpp"
#include "pg/connection.hpp"
#include "pg/connector.hpp"
#include "runtime/async.hpp"
#include "runtime/completion.hpp"
#include "runtime/metrics.hpp"
#include "runtime/task_group.hpp"

namespace fencepost::pg {

struct PoolOptions {
  std::size_t shared_connections = 1;
  std::size_t exclusive_connections = 4;
  std::size_t max_in_flight = 256;  // batches on one shared connection
  std::size_t queue_limit = 4096;   // callers waiting, of either kind
  std::chrono::milliseconds acquire_timeout{5000};
  int max_attempts = 5;  // for a transaction that deadlocks or fails to serialize
};

class Pool;

// An exclusive connection, returned to the pool when this goes out of scope. If a transaction is still open or an
// answer is outstanding, as after a cancellation, the pool closes the session instead.
class BorrowedConnection {
 public:
  BorrowedConnection(Pool& pool, std::shared_ptr<Connection> connection)
      : pool_(&pool), connection_(std::move(connection)) {}
  ~BorrowedConnection();
  BorrowedConnection(BorrowedConnection&& other) noexcept
      : pool_(other.pool_), connection_(std::move(other.connection_)) {}
  BorrowedConnection& operator=(BorrowedConnection&&) = delete;

  Connection& operator*() const { return *connection_; }
  Connection* operator->() const { return connection_.get(); }

 private:
  Pool* pool_;
  std::shared_ptr<Connection> connection_;
};

class Pool {
 public:
  Pool(Executor executor, Connector& connector, const PoolOptions& options, Metrics& metrics);
  ~Pool();

  void start();
  // Refuses new callers, waits up to `grace` for batches in flight, then closes all connections.
  awaitable<> stop(std::chrono::milliseconds grace);

  // Runs a batch on a shared connection. Deadlocks and serialization failures are retried. After a lost connection,
  // Access::kRead is retried once; Access::kWrite throws CommitUnknown if anything was sent. Throws QueryError,
  // ConnectionLost, CommitUnknown, PoolExhausted.
  awaitable<std::vector<ResultSet>> run(Batch batch, RunOptions options = {});

  // One statement that only reads.
  template <class... Values>
  awaitable<ResultSet> query(const Statement& statement, const Values&... values) {
    return run_one(Batch().add(statement, values...), Access::kRead);
  }
  // One statement that writes.
  template <class... Values>
  awaitable<ResultSet> execute(const Statement& statement, const Values&... values) {
    return run_one(Batch().add(statement, values...), Access::kWrite);
  }

  // Lends an exclusive connection. Throws PoolExhausted, ConnectionLost.
  awaitable<BorrowedConnection> acquire();

  // Whether at least one shared connection is open.
  bool connected() const;
  Executor executor() const { return executor_; }
  const PoolOptions& options() const { return options_; }
  Random& random() { return random_; }

 private:
  friend class BorrowedConnection;

  // A queue of waiting callers, in order of arrival.
  class Line {
   public:
    Line(Executor executor, Metrics::Gauge& waiting, Metrics::Histogram& wait_time)
        : executor_(executor), waiting_(waiting), wait_time_(wait_time) {}
    awaitable<> stand(std::chrono::milliseconds timeout);
    void admit_one();
    bool empty() const { return tickets_.empty(); }
    std::size_t size() const { return tickets_.size(); }

   private:
    using Ticket = std::shared_ptr<Completion<bool>>;
    Executor executor_;
    Metrics::Gauge& waiting_;
    Metrics::Histogram& wait_time_;
    std::list<Ticket> tickets_;
  };

  awaitable<ResultSet> run_one(Batch batch, Access access);
  awaitable<std::shared_ptr<Connection>> shared_connection();
  std::shared_ptr<Connection> free_shared();
  awaitable<> keep_connected(std::size_t slot);
  void give_back(std::shared_ptr<Connection> connection);
  void refuse_if_full(const Line& line);
  Metrics::Summary& latency_of(const Batch& batch);

  Executor executor_;
  Connector& connector_;
  PoolOptions options_;
  Metrics& metrics_;
  SeededRandom random_;
  TaskGroup keepers_;

  std::vector<std::shared_ptr<Connection>> shared_;
  Line shared_line_;
  std::vector<std::shared_ptr<Connection>> idle_;
  std::size_t lent_ = 0;
  Line exclusive_line_;
  asio::steady_timer drained_;
  bool stopping_ = false;

  Metrics::Counter& connected_total_;
  Metrics::Counter& lost_total_;
  Metrics::Counter& refused_total_;
  Metrics::Counter& retried_total_;
  Metrics::Gauge& lent_gauge_;
  std::unordered_map<const Statement*, Metrics::Summary*> latencies_;
};

}  // namespace fencepost::pg
