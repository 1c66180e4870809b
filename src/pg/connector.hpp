// Opens sessions: connects to the DSN's hosts under the node's name, and sets up every session in the same way.
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
  std::string application_name;  // the node's id: other nodes find an expired owner's backends by it
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds statement_timeout{30'000};  // zero means no timeout
};

class Connector {
 public:
  explicit Connector(ConnectOptions options);
  // Waits for attempts in flight: at most the connect timeout for each host.
  ~Connector();

  // Returns a session in time zone UTC with timeouts set, ready for Connection::start. Call on a loop's thread. It
  // connects on its own threads, because libpq looks up host names synchronously and a slow resolver must not block a
  // loop. Throws ConnectionLost, at the latest when every host has had its connect timeout or `deadline` has passed; a
  // session that opens later is dropped.
  awaitable<std::shared_ptr<Connection>> connect(Executor executor, Deadline deadline = kNoDeadline);

  const ConnectOptions& options() const { return options_; }

 private:
  ConnectOptions options_;
  std::chrono::milliseconds patience_;
  asio::thread_pool threads_;
};

}  // namespace fencepost::pg
