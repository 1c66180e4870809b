// Opens sessions: where the database is, who we are, and what every session is told first.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/thread_pool.hpp>

#include "base/secret.hpp"
#include "pg/connection.hpp"
#include "runtime/async.hpp"

namespace fencepost::pg {

struct ConnectOptions {
  Secret dsn;                    // libpq URI or key=value; several hosts and target_session_attrs work
  std::string application_name;  // the node's id: an expired owner's backends are recognised by it
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds statement_timeout{30'000};  // zero: none
};

class Connector {
 public:
  explicit Connector(ConnectOptions options);
  // Waits for attempts that still run: at most the connect timeout for each host.
  ~Connector();

  // A session with the time zone at UTC, timeouts set, ready for Connection::start. Runs on threads of its own,
  // because libpq looks up host names synchronously and a slow resolver must not stop a loop. Call it from a
  // loop's thread. Throws ConnectionLost, at the latest when every host has had its connect timeout or `deadline`
  // has passed; a session that comes later is dropped.
  awaitable<std::shared_ptr<Connection>> connect(Executor executor, Deadline deadline = kNoDeadline);

  const ConnectOptions& options() const { return options_; }

 private:
  ConnectOptions options_;
  std::chrono::milliseconds patience_;
  asio::thread_pool threads_;
};

}  // namespace fencepost::pg
