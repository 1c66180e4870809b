// How webhooks are delivered. docs/configuration.md describes the keys `webhooks.*`.
#pragma once

#include <chrono>
#include <cstddef>

namespace fencepost::outbox {

struct WebhookOptions {
  bool allow_private = false;  // addresses that are not on the public internet, and any port
  bool allow_http = false;     // URLs without TLS
  std::chrono::milliseconds timeout = std::chrono::seconds(10);       // of one request
  std::chrono::milliseconds retry_initial = std::chrono::seconds(5);  // after the first failure
  std::chrono::milliseconds retry_cap = std::chrono::hours(4);
  std::chrono::milliseconds retry_for = std::chrono::days(3);         // then an event becomes a dead letter
  std::chrono::milliseconds secret_overlap = std::chrono::hours(24);  // how long a replaced secret signs, too
  std::size_t connections = 16;                                       // requests in flight to one receiver
  std::size_t backlog = 1000;                                         // waiting events of one webhook
  std::size_t limit = 1000;                                           // webhooks in the whole cluster
};

inline constexpr std::size_t kMaxDeadLetters = 10'000;  // of one webhook; then it is disabled

}  // namespace fencepost::outbox
