// A real NATS server with JetStream for tests: a free port of 127.0.0.1 and a store of its own. The destructor stops
// it.
//
//   test::NatsServer nats;
//   nats.kill();     // as in a crash: its store stays
//   nats.restart();  // on the same port, with the same store
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/child_process.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::test {

struct NatsServerOptions {
  bool jetstream = true;
  std::string config;  // lines of the server's configuration file in addition
};

struct NatsStreamLimits {
  std::chrono::milliseconds duplicate_window = std::chrono::minutes(2);
  std::int32_t max_message_bytes = -1;  // with the headers; -1: no limit
};

// A message as the stream has it.
struct StoredMessage {
  std::uint64_t sequence = 0;
  std::string subject;
  std::string id;  // Nats-Msg-Id
  std::string content_type;
  std::string body;
};

class NatsServer {
 public:
  // Returns when the server is ready. Throws if it does not start.
  explicit NatsServer(NatsServerOptions options = {});
  ~NatsServer();

  std::uint16_t port() const { return port_; }
  std::string url() const;
  std::string log() const;

  // SIGKILL, and waits for its end.
  void kill();
  // Starts it again. Requires: it was killed. Throws if it does not start.
  void restart();
  // SIGSTOP and SIGCONT: a server that does not answer.
  void suspend();
  void resume();

  // All messages of the stream in its order, read by a consumer as users do; empty if there is no such stream. Throws
  // if the server does not answer.
  std::vector<StoredMessage> messages(const std::string& stream) const;
  std::uint64_t message_count(const std::string& stream) const;
  // A stream made by another program.
  void add_stream(const std::string& stream, const std::vector<std::string>& subjects,
                  const NatsStreamLimits& limits = {}) const;
  void delete_stream(const std::string& stream) const;
  std::vector<std::string> subjects_of(const std::string& stream) const;
  // Publishes as another program would, and waits until the stream has the message.
  void publish(const std::string& subject, const std::string& body) const;

 private:
  void start();

  TempDir dir_{"nats"};
  NatsServerOptions options_;
  std::optional<ChildProcess> child_;
  std::uint16_t port_ = 0;
};

}  // namespace fencepost::test
