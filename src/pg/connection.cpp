#include "pg/connection.hpp"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include <boost/asio/error.hpp>

#include "pg/error.hpp"
#include "runtime/log.hpp"

namespace fencepost::pg {
namespace {

using namespace std::chrono_literals;

// How long the server may stay silent, beyond the timeouts of its statements, before the connection counts as lost.
constexpr auto kSilenceAllowance = 5s;

constexpr Statement kSetStatementTimeout{"fp_set_statement_timeout",
                                         "SELECT set_config('statement_timeout', $1, true)"};
constexpr Statement kSetLockTimeout{"fp_set_lock_timeout", "SELECT set_config('lock_timeout', $1, true)"};

std::string field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string{} : std::string{text};
}

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

void log_notice(void*, const char* message) {
  log::debug("notice from PostgreSQL", {{"notice", first_line(message)}});
}

}  // namespace

Connection::Connection(Executor executor, PgConn session, std::chrono::milliseconds statement_timeout)
    : executor_(executor),
      session_(std::move(session)),
      socket_(executor, PQsocket(session_.get())),
      watchdog_(executor),
      statement_timeout_(statement_timeout),
      backend_pid_(PQbackendPID(session_.get())) {
  PQsetNoticeProcessor(session_.get(), log_notice, nullptr);
}

Connection::~Connection() {
  // Handlers hold a shared_ptr, so none is pending here. libpq closes the descriptor; it must not be closed twice.
  if (session_) socket_.release();
}

void Connection::start(Events events) {
  events_ = std::move(events);
  if (PQsetnonblocking(session_.get(), 1) != 0 || PQenterPipelineMode(session_.get()) != 1) {
    return close("cannot enter pipeline mode");
  }
  wait_readable();
}

awaitable<std::vector<ResultSet>> Connection::run(const Batch& batch, RunOptions options) {
  if (batch.empty()) co_return std::vector<ResultSet>{};
  if (!is_open()) throw ConnectionLost("the connection is closed");
  const auto pending = std::make_shared<Pending>(executor_);
  const std::string name(batch.name());
  send(batch, options.access, pending);

  const auto deadline = options.timeout ? std::chrono::steady_clock::now() + *options.timeout : kNoDeadline;
  if (!co_await pending->wait(deadline)) {
    const auto reason = fmt::format("no answer within {} ms", options.timeout->count());
    if (options.access == Access::kWrite) throw CommitUnknown(name, reason);
    throw ConnectionLost(reason);
  }
  if (!pending->value()) std::rethrow_exception(pending->value().error());
  co_return std::move(*pending->value());
}

awaitable<std::vector<ResultSet>> Connection::exec_script(std::string sql,
                                                          std::optional<std::chrono::milliseconds> limit) {
  if (!is_open()) throw ConnectionLost("the connection is closed");
  assert(in_flight_.empty() && "exec_script requires that nothing else is in flight");
  const auto pending = std::make_shared<Pending>(executor_);
  Segment segment{.kind = Segment::Kind::kScript, .patience = limit, .pending = pending};
  if (PQexitPipelineMode(session_.get()) != 1 || PQsendQuery(session_.get(), sql.c_str()) != 1) {
    const std::string reason = first_line(PQerrorMessage(session_.get()));
    close(reason);
    throw ConnectionLost(reason);
  }
  push(std::move(segment));
  flush();
  co_await pending->wait();
  if (!pending->value()) std::rethrow_exception(pending->value().error());
  co_return std::move(*pending->value());
}

void Connection::close(const std::string& reason) {
  if (!is_open()) return;
  // libpq owns the descriptor: release it before PQfinish closes it.
  socket_.release();
  session_.reset();
  watchdog_.cancel();
  auto lost = std::exchange(in_flight_, {});
  for (auto& segment : lost) deliver_loss(segment, reason);
  if (events_.on_close) events_.on_close(reason);
}

void Connection::send(const Batch& batch, Access access, std::shared_ptr<Pending> pending) {
  // Statements that run before the caller's own, and whose results the caller does not see.
  std::vector<Batch::Entry> prelude;
  if (batch.prologue() != nullptr) prelude.push_back({batch.prologue(), Params()});
  if (const auto limit = batch.statement_timeout()) {
    prelude.push_back({&kSetStatementTimeout, Params::of(std::int64_t{limit->count()})});
  }
  if (const auto limit = batch.lock_timeout()) {
    prelude.push_back({&kSetLockTimeout, Params::of(std::int64_t{limit->count()})});
  }

  // Each prepare has its own sync, so that an error in this batch cannot undo a prepare that the next batch relies on.
  bool ok = true;
  for (const auto& entry : prelude) ok = ok && prepare(entry, nullptr);
  // Preparing a statement waits for locks on its tables, so the limit holds there, too.
  const auto* limit = batch.lock_timeout() ? &prelude.back() : nullptr;
  for (const auto& entry : batch.entries()) ok = ok && prepare(entry, limit);

  Segment segment{.kind = Segment::Kind::kBatch, .access = access, .pending = std::move(pending)};
  segment.hidden = prelude.size();
  segment.statements.reserve(prelude.size() + batch.entries().size());
  for (const auto& entry : prelude) segment.statements.push_back(entry.statement);
  for (const auto& entry : batch.entries()) segment.statements.push_back(entry.statement);
  const auto per_statement = batch.statement_timeout().value_or(statement_timeout_);
  if (per_statement > 0ms) segment.patience = per_statement * segment.statements.size() + kSilenceAllowance;
  push(std::move(segment));

  for (const auto& entry : prelude) ok = ok && send_statement(entry);
  for (const auto& entry : batch.entries()) ok = ok && send_statement(entry);
  ok = ok && PQpipelineSync(session_.get()) == 1;
  if (!ok) return close(first_line(PQerrorMessage(session_.get())));
  flush();
}

bool Connection::prepare(const Batch::Entry& entry, const Batch::Entry* lock_timeout) {
  const auto& statement = *entry.statement;
  if (const auto it = prepared_.find(statement.name); it != prepared_.end()) {
    if (it->second.sql == statement.sql) return true;
    throw Exception(internal("duplicate_statement", fmt::format("two statements are called '{}'", statement.name)));
  }
  std::string name(statement.name);
  if (stale_plans_ > 0) name += fmt::format("#{}", stale_plans_);
  const std::string sql(statement.sql);
  prepared_[statement.name] = {statement.sql, name};
  Segment segment{.kind = Segment::Kind::kPrepare, .access = Access::kRead};
  if (lock_timeout != nullptr) segment.statements.push_back(lock_timeout->statement);
  segment.statements.push_back(&statement);
  if (statement_timeout_ > 0ms) segment.patience = statement_timeout_ + kSilenceAllowance;
  push(std::move(segment));
  if (lock_timeout != nullptr && !send_statement(*lock_timeout)) return false;
  entry.params.to_wire(wire_);
  return PQsendPrepare(session_.get(), name.c_str(), sql.c_str(), static_cast<int>(wire_.types.size()),
                       wire_.types.data()) == 1 &&
         PQpipelineSync(session_.get()) == 1;
}

bool Connection::send_statement(const Batch::Entry& entry) {
  entry.params.to_wire(wire_);
  const auto& name = prepared_.at(entry.statement->name).server_name;
  return PQsendQueryPrepared(session_.get(), name.c_str(), static_cast<int>(entry.params.size()), wire_.values.data(),
                             wire_.lengths.data(), wire_.formats.data(), 0) == 1;
}

void Connection::push(Segment segment) {
  in_flight_.push_back(std::move(segment));
  if (in_flight_.size() == 1) watch_head();
}

void Connection::flush() {
  if (waiting_writable_ || !is_open()) return;
  const int left = PQflush(session_.get());
  if (left < 0) return close(first_line(PQerrorMessage(session_.get())));
  if (left > 0) wait_writable();
}

void Connection::wait_writable() {
  waiting_writable_ = true;
  socket_.async_wait(socket_.wait_write, [self = shared_from_this()](boost::system::error_code ec) {
    self->waiting_writable_ = false;
    if (!ec) self->flush();
  });
}

void Connection::wait_readable() {
  socket_.async_wait(socket_.wait_read, [self = shared_from_this()](boost::system::error_code ec) {
    if (!ec && self->is_open()) self->on_readable();
  });
}

void Connection::on_readable() {
  const bool alive = PQconsumeInput(session_.get()) == 1;
  // Read the answers that arrived before the loss first: their outcome is known.
  drain_results();
  if (!is_open()) return;
  drain_notifications();
  if (!alive || PQstatus(session_.get()) == CONNECTION_BAD) {
    return close(first_line(PQerrorMessage(session_.get())));
  }
  wait_readable();
}

void Connection::drain_results() {
  bool separator = false;
  while (is_open() && !in_flight_.empty() && PQisBusy(session_.get()) == 0) {
    PGresult* raw = PQgetResult(session_.get());
    if (raw == nullptr) {
      if (in_flight_.front().kind == Segment::Kind::kScript) {
        if (PQstatus(session_.get()) == CONNECTION_BAD) return;
        if (PQenterPipelineMode(session_.get()) != 1) return close("cannot enter pipeline mode");
        finish_segment();
      } else if (std::exchange(separator, true)) {
        return;  // two nulls in a row: libpq has no more results, e.g. after a loss
      }
      continue;
    }
    separator = false;
    on_result(ResultSet(raw), raw);
  }
}

void Connection::drain_notifications() {
  struct Free {
    void operator()(PGnotify* notification) const { PQfreemem(notification); }
  };
  while (is_open()) {
    const std::unique_ptr<PGnotify, Free> notification(PQnotifies(session_.get()));
    if (!notification) return;
    if (events_.on_notify) events_.on_notify(notification->relname, notification->extra);
  }
}

void Connection::on_result(ResultSet result, PGresult* raw) {
  auto& segment = in_flight_.front();
  switch (PQresultStatus(raw)) {
    case PGRES_PIPELINE_SYNC:
      return finish_segment();
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
    case PGRES_EMPTY_QUERY:
      segment.results.push_back(std::move(result));
      return;
    case PGRES_PIPELINE_ABORTED:
      return;
    case PGRES_FATAL_ERROR:
      return on_failure(raw);
    default:
      return close(fmt::format("unexpected result status {}", PQresStatus(PQresultStatus(raw))));
  }
}

void Connection::on_failure(PGresult* raw) {
  const auto sqlstate = field(raw, PG_DIAG_SQLSTATE);
  const auto severity = field(raw, PG_DIAG_SEVERITY_NONLOCALIZED);
  // An error without a SQLSTATE is libpq's own: the connection broke. FATAL and PANIC end the session. In both cases it
  // is unknown whether the transaction was committed before.
  if (sqlstate.empty() || severity == "FATAL" || severity == "PANIC")
    return close(first_line(PQresultErrorMessage(raw)));

  auto& segment = in_flight_.front();
  if (segment.error) return;
  const auto index = segment.results.size();
  const auto name = index < segment.statements.size() ? std::string(segment.statements[index]->name)
                    : segment.statements.empty()      ? std::string("script")
                                                      : std::string("commit");
  const auto* statement = index < segment.statements.size() ? segment.statements[index] : nullptr;
  const auto message = field(raw, PG_DIAG_MESSAGE_PRIMARY);
  const bool unprepared = sqlstate == "26000";
  // "cached plan must not change result type": recognised by its source function, because the text may be translated.
  const bool stale_plan = sqlstate == "0A000" && field(raw, PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery";
  if (statement != nullptr && segment.kind == Segment::Kind::kBatch && (unprepared || stale_plan)) {
    // The prepare has just failed, a migration changed the columns, or a pooler reset the session. The next use
    // prepares the statement again, under a name that this session has not used.
    prepared_.erase(statement->name);
    ++stale_plans_;
    if (const auto it = prepare_errors_.find(statement->name); it != prepare_errors_.end()) {
      segment.error = it->second;
      return;
    }
  }
  segment.error = std::make_exception_ptr(
      QueryError(name, sqlstate, message, field(raw, PG_DIAG_CONSTRAINT_NAME), unprepared || stale_plan));
}

void Connection::finish_segment() {
  Segment segment = std::move(in_flight_.front());
  in_flight_.pop_front();
  if (!in_flight_.empty()) watch_head();
  deliver(segment);
  if (events_.on_drained) events_.on_drained();
}

void Connection::deliver(Segment& segment) {
  if (segment.kind == Segment::Kind::kPrepare) {
    const auto* statement = segment.statements.back();
    if (segment.error) {
      prepared_.erase(statement->name);
      prepare_errors_[statement->name] = segment.error;
    } else {
      prepare_errors_.erase(statement->name);
    }
    return;
  }
  if (segment.error) {
    segment.pending->complete(std::unexpected(segment.error));
    return;
  }
  const auto visible = std::min(segment.hidden, segment.results.size());
  segment.results.erase(segment.results.begin(), segment.results.begin() + static_cast<std::ptrdiff_t>(visible));
  segment.pending->complete(std::move(segment.results));
}

void Connection::deliver_loss(Segment& segment, const std::string& reason) {
  if (segment.kind == Segment::Kind::kPrepare) return;
  // An error already read is final: the transaction can only have been rolled back.
  auto error = segment.error;
  if (!error && segment.access == Access::kWrite) {
    const auto name = segment.statements.size() > segment.hidden ? std::string(segment.statements[segment.hidden]->name)
                                                                 : std::string("script");
    error = std::make_exception_ptr(CommitUnknown(name, reason));
  }
  if (!error) error = std::make_exception_ptr(ConnectionLost(reason));
  segment.pending->complete(std::unexpected(error));
}

// Called when a segment becomes the head of the pipeline. All segments share one timer: it is set again only when the
// new head is due earlier, and when it expires it checks the current head.
void Connection::watch_head() {
  const auto patience = in_flight_.front().patience;
  head_due_ = patience ? std::chrono::steady_clock::now() + *patience : kNoDeadline;
  if (head_due_ < watchdog_due_) set_watchdog();
}

void Connection::set_watchdog() {
  watchdog_due_ = head_due_;
  watchdog_.expires_at(watchdog_due_);
  watchdog_.async_wait([self = shared_from_this()](boost::system::error_code ec) {
    if (ec || !self->is_open()) return;  // the timer was set again, or the connection is closed
    self->watchdog_due_ = kNoDeadline;
    if (self->in_flight_.empty() || self->head_due_ == kNoDeadline) return;
    if (std::chrono::steady_clock::now() >= self->head_due_) {
      self->close("the server stopped answering");
    } else {
      self->set_watchdog();
    }
  });
}

}  // namespace fencepost::pg
