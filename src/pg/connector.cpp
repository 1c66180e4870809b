#include "pg/connector.hpp"

#include <array>
#include <expected>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

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

PgConn open_session(const ConnectOptions& options) {
  const std::string dsn(options.dsn.reveal());
  const auto timeout_s = std::chrono::ceil<std::chrono::seconds>(options.connect_timeout).count();
  const auto timeout = std::to_string(std::max<std::int64_t>(2, timeout_s));  // libpq's own minimum
  // What stands before dbname is a default that the DSN may change; what stands after it is not for the DSN.
  const std::array<const char*, 8> keys{"keepalives_idle", "keepalives_interval", "keepalives_count",
                                        "tcp_user_timeout", "dbname", "application_name", "connect_timeout", nullptr};
  const std::array<const char*, 8> values{
      "10", "3", "3", "10000", dsn.c_str(), options.application_name.c_str(), timeout.c_str(), nullptr};
  return PgConn(PQconnectdbParams(keys.data(), values.data(), 1));
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
      "SET idle_in_transaction_session_timeout = '60s'",
      options.statement_timeout.count());
  const ResultSet result(PQexec(session.get(), setup.c_str()));
  if (PQstatus(session.get()) != CONNECTION_OK || PQerrorMessage(session.get())[0] != '\0') {
    return std::unexpected(reason_of(session.get()));
  }
  return session;
}

}  // namespace

Connector::Connector(ConnectOptions options) : options_(std::move(options)), threads_(2) {}

Connector::~Connector() { threads_.join(); }

awaitable<std::shared_ptr<Connection>> Connector::connect(Executor executor) {
  const auto answer = std::make_shared<Completion<Opened>>(executor);
  asio::post(threads_, [executor, answer, options = options_] {
    auto opened = std::make_shared<Opened>(open_and_set_up(options));
    asio::post(executor, [answer, opened] { answer->complete(std::move(*opened)); });
  });
  co_await answer->wait();
  auto& opened = answer->value();
  if (!opened) throw ConnectionLost(opened.error());
  co_return std::make_shared<Connection>(executor, std::move(*opened), options_.statement_timeout);
}

}  // namespace fencepost::pg
