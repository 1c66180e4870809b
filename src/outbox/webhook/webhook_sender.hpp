// Sends signed requests to one receiver, and says what became of each.
//
// Pinned to one loop. Requests in flight share ownership, so a caller may be cancelled while one runs.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "http/client.hpp"
#include "outbox/webhook/options.hpp"
#include "outbox/webhook/signature.hpp"

namespace fencepost::outbox {

struct Outcome {
  enum class Kind {
    kDelivered,  // 2xx
    kRefused,    // the receiver refuses this request: 3xx, 4xx
    kDown,       // the receiver is not there, or is overloaded: no answer, 408, 429, 5xx
    kGone,       // 410: the receiver wants no more
  };
  Kind kind = Kind::kDown;
  std::optional<unsigned> status;  // nullopt: there was no answer
  std::string error;               // empty when delivered
  std::chrono::milliseconds latency{0};
  std::optional<std::chrono::milliseconds> retry_after;  // as the receiver asked, at most an hour
  TimePoint at;                                          // when it was sent

  bool delivered() const { return kind == Kind::kDelivered; }
};

class WebhookSender {
 public:
  WebhookSender(Executor executor, std::string url, WebhookKeys keys, const WebhookOptions& options,
                const Clock& clock);

  // `list`: the body is a list of envelopes. Never fails: the outcome says why nothing was delivered.
  awaitable<Outcome> send(std::string message_id, std::string body, bool list);

 private:
  std::string url_;
  WebhookKeys keys_;
  const Clock& clock_;
  std::chrono::milliseconds timeout_;
  http::Client client_;
};

// The outcome of an answer with that status. Pure.
Outcome::Kind outcome_of_status(unsigned status);

}  // namespace fencepost::outbox
