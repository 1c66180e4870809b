#include "pg/connector.hpp"

#include <array>
#include <expected>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <poll.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

#include "pg/error.hpp"
#include "runtime/completion.hpp"

namespace fencepost::pg {
namespace {

using Opened = std::expected<PgConn, std::string>;

std::string reason_of(const PGconn* session) {
  std::string reason = session == nullptr ? "out of memory" : PQerrorMessage(session);
  while (reason.ends_with('\n')) reason.pop_back();
  return reason;
}

// The timeout for each host; libpq's own minimum is two seconds.
std::chrono::seconds libpq_timeout(const ConnectOptions& options) {
  return std::max(std::chrono::seconds(2), std::chrono::ceil<std::chrono::seconds>(options.connect_timeout));
}

int host_count(const ConnectOptions& options) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> parsed(
      PQconninfoParse(std::string(options.dsn.reveal()).c_str(), nullptr), &PQconninfoFree);
  std::ptrdiff_t commas = 0;
  for (const auto* option = parsed.get(); option != nullptr && option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword;
    const std::string_view value = option->val == nullptr ? "" : option->val;
    if (key == "host" || key == "hostaddr") commas = std::max(commas, std::ranges::count(value, ','));
  }
  return static_cast<int>(commas) + 1;
}

PgConn open_session(const ConnectOptions& options) {
  const std::string dsn(options.dsn.reveal());
  const auto timeout = std::to_string(libpq_timeout(options).count());
  // Keys before dbname are defaults that the DSN may override; keys after it override the DSN.
  const std::array<const char*, 8> keys{
      "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout",
      "dbname",          "application_name",    "connect_timeout",  nullptr};
  const std::array<const char*, 8> values{
      "10", "3", "3", "10000", dsn.c_str(), options.application_name.c_str(), timeout.c_str(), nullptr};
  return PgConn(PQconnectdbParams(keys.data(), values.data(), 1));
}

// PQexec with a deadline, because a pooler whose server is down accepts the client and then lets it wait. Returns the
// reason of a failure, nullopt on success.
std::optional<std::string> exec_until(PGconn* session, const std::string& sql, Deadline deadline) {
  if (PQsendQuery(session, sql.c_str()) == 0) return reason_of(session);
  std::optional<std::string> failure;
  while (true) {
    while (PQisBusy(session) == 0) {
      const std::unique_ptr<PGresult, detail::ClearResult> result(PQgetResult(session));
      if (!result) return failure;
      if (PQresultStatus(result.get()) != PGRES_COMMAND_OK && !failure) failure = reason_of(session);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return "the server accepted the connection and then did not answer in time";
    pollfd socket{PQsocket(session), POLLIN, 0};
    ::poll(&socket, 1, static_cast<int>(left.count()));
    if (PQconsumeInput(session) == 0) return reason_of(session);
  }
}

Opened open_and_set_up(const ConnectOptions& options) {
  auto session = open_session(options);
  if (PQstatus(session.get()) != CONNECTION_OK) return std::unexpected(reason_of(session.get()));
  const auto setup = fmt::format(
      "SET statement_timeout = {};"
      "SET TimeZone = 'UTC';"
      "SET DateStyle = 'ISO, YMD';"
      "SET bytea_output = 'hex';"
      "SET client_min_messages = 'warning';"
      // A statement after a lock must see the rows that were committed before the lock was granted. The role's default
      // may be another isolation level.
      "SET default_transaction_isolation = 'read committed';"
      // Fencepost's statements use indexes; a plan without one was made while the table was empty, and plans are kept.
      "SET enable_seqscan = off; SET jit = off;"
      // Plan once. Otherwise PostgreSQL, which knows the array's length, considers a custom plan for each batch
      // slightly cheaper and spends a millisecond on planning it.
      "SET plan_cache_mode = force_generic_plan;"
      // The server's side of the keepalives in open_session: a session whose client has vanished must release its locks
      // before the kernel's default timeout.
      "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3;"
      "SET tcp_user_timeout = 10000;"
      "SET idle_in_transaction_session_timeout = '60s'",
      options.statement_timeout.count());
  const auto deadline = std::chrono::steady_clock::now() + options.connect_timeout;
  if (auto failure = exec_until(session.get(), setup, deadline)) return std::unexpected(std::move(*failure));
  return session;
}

}  // namespace

Connector::Connector(ConnectOptions options)
    : options_(std::move(options)),
      patience_(libpq_timeout(options_) * host_count(options_) + std::chrono::seconds(1)),
      threads_(4) {}

Connector::~Connector() {
  threads_.join();
}

awaitable<std::shared_ptr<Connection>> Connector::connect(Executor executor, Deadline deadline) {
  const auto answer = std::make_shared<Completion<Opened>>(executor);
  // The guard keeps the loop running until the result has been delivered, also when the caller no longer waits.
  asio::post(threads_,
             [executor, answer = answer, options = options_, guard = asio::make_work_guard(executor)]() mutable {
               // A count of 1 means that the caller gave up while this work was queued.
               const bool wanted = answer.use_count() > 1;
               auto opened = std::make_shared<Opened>(wanted ? open_and_set_up(options) : std::unexpected("cancelled"));
               asio::post(executor, [answer = std::move(answer), opened] { answer->complete(std::move(*opened)); });
             });
  const auto limit = std::min(deadline, std::chrono::steady_clock::now() + patience_);
  if (!co_await answer->wait(limit)) throw ConnectionLost("no connection was opened in time");
  auto& opened = answer->value();
  if (!opened) throw ConnectionLost(opened.error());
  co_return std::make_shared<Connection>(executor, std::move(*opened), options_.statement_timeout);
}

}  // namespace fencepost::pg
