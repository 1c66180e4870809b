// One session with PostgreSQL, always in pipeline mode.
//
// Any number of coroutines may have batches in flight at once; answers arrive in order. Pinned to one loop: call every
// method on that loop's thread; callbacks run there too.
//
// Only this class decides, for each batch, what a lost connection means: see pg/error.hpp.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <libpq-fe.h>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "pg/batch.hpp"
#include "pg/result.hpp"
#include "runtime/async.hpp"
#include "runtime/completion.hpp"

namespace fencepost::pg {

struct FinishConnection {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using PgConn = std::unique_ptr<PGconn, FinishConnection>;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Events {
    std::function<void(std::string_view channel, std::string_view payload)> on_notify;
    std::function<void()> on_drained;  // a batch has left the pipeline
    std::function<void(const std::string& reason)> on_close;
  };

  // Requires: `session` is connected and set up (see Connector), with this `statement_timeout`. The watchdog closes the
  // connection when the server stays silent for longer than that allows.
  Connection(Executor executor, PgConn session, std::chrono::milliseconds statement_timeout);
  ~Connection();

  // Call once, right after construction.
  void start(Events events);

  // Runs the batch as one implicit transaction, and returns one ResultSet per statement. Throws QueryError,
  // ConnectionLost, CommitUnknown. Await it at once: the coroutine reads the batch when it starts. A caller may give up
  // waiting (by timeout or cancellation): the connection stays usable and drops the late answer.
  awaitable<std::vector<ResultSet>> run(const Batch& batch, RunOptions options = {});

  // Runs SQL text of any number of statements by the simple protocol, as one transaction unless the text has its own
  // BEGIN and COMMIT. Requires: nothing else is in flight. For migrations, LISTEN and administration. The connection is
  // closed when the server stays silent for longer than `limit`; nullopt means no limit.
  awaitable<std::vector<ResultSet>> exec_script(std::string sql,
                                                std::optional<std::chrono::milliseconds> limit = std::nullopt);

  // Ends the session now; batches in flight fail as lost.
  void close(const std::string& reason);

  bool is_open() const { return session_ != nullptr; }
  // Whether nothing is in flight and no transaction is open, so that the next caller can use the connection.
  bool is_clean() const {
    return is_open() && in_flight_.empty() && PQtransactionStatus(session_.get()) == PQTRANS_IDLE;
  }
  std::size_t in_flight() const { return in_flight_.size(); }
  int backend_pid() const { return backend_pid_; }

 private:
  using Outcome = std::expected<std::vector<ResultSet>, std::exception_ptr>;
  using Pending = Completion<Outcome>;

  // The messages up to one sync: a prepare, a batch, or a script.
  struct Segment {
    enum class Kind { kPrepare, kBatch, kScript };
    Kind kind;
    Access access = Access::kWrite;
    std::vector<const Statement*> statements;
    std::size_t hidden = 0;                             // leading statements whose results the caller does not see
    std::optional<std::chrono::milliseconds> patience;  // nullopt: no limit
    std::shared_ptr<Pending> pending;                   // null for a prepare
    std::vector<ResultSet> results;
    std::exception_ptr error;
  };
  struct Prepared {
    std::string_view sql;
    std::string server_name;
  };

  void send(const Batch& batch, Access access, std::shared_ptr<Pending> pending);
  // `lock_timeout`: the prepared statement that sets it; null: no limit.
  bool prepare(const Batch::Entry& entry, const Batch::Entry* lock_timeout);
  bool send_statement(const Batch::Entry& entry);
  void push(Segment segment);
  void flush();

  void wait_readable();
  void wait_writable();
  void on_readable();
  void drain_results();
  void drain_notifications();
  void on_result(ResultSet result, PGresult* raw);
  void on_failure(PGresult* raw);
  void finish_segment();
  void deliver(Segment& segment);
  void deliver_loss(Segment& segment, const std::string& reason);
  void watch_head();
  void set_watchdog();

  Executor executor_;
  PgConn session_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer watchdog_;
  std::chrono::milliseconds statement_timeout_;
  int backend_pid_;
  Events events_;

  std::deque<Segment> in_flight_;
  Deadline head_due_ = kNoDeadline;
  Deadline watchdog_due_ = kNoDeadline;
  bool waiting_writable_ = false;
  // The statements that are prepared, or will be before the server reads the next message, and their names there.
  std::unordered_map<std::string_view, Prepared> prepared_;
  std::unordered_map<std::string_view, std::exception_ptr> prepare_errors_;
  std::uint64_t stale_plans_ = 0;
  Params::Wire wire_;
};

// A session that is closed when its owner goes out of scope. (A Connection alone is not: its pending reads keep it
// alive until it is closed.)
class OwnedConnection {
 public:
  OwnedConnection(std::shared_ptr<Connection> connection, Connection::Events events)
      : connection_(std::move(connection)) {
    connection_->start(std::move(events));
  }
  ~OwnedConnection() { connection_->close("the owner no longer needs it"); }
  OwnedConnection(const OwnedConnection&) = delete;
  OwnedConnection& operator=(const OwnedConnection&) = delete;

  Connection& operator*() const { return *connection_; }
  Connection* operator->() const { return connection_.get(); }

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace fencepost::pg
