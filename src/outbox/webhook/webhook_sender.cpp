#include "outbox/webhook/webhook_sender.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "http/message.hpp"
#include "outbox/webhook/address_rules.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestRetryAfter = std::chrono::milliseconds(1h);

http::ClientOptions client_options(const WebhookOptions& options) {
  http::ClientOptions out{.connect_timeout = options.timeout,
                          .total_timeout = options.timeout,
                          .max_header_bytes = 16 * 1024,
                          .max_body_bytes = 1024 * 1024,  // of the receiver's answer, which is not used
                          .max_connections_per_origin = options.connections,
                          .max_idle_per_origin = options.connections};
  if (!options.allow_private) out.allows_address = is_public_address;
  return out;
}

// Only seconds: a date would depend on two clocks.
std::optional<std::chrono::milliseconds> retry_after_of(const http::ClientResponse& response) {
  const auto text = response.header("Retry-After");
  if (!text) return std::nullopt;
  const auto seconds = http::detail::parse_parameter<std::uint32_t>(*text);
  if (!seconds) return std::nullopt;
  return std::min(std::chrono::milliseconds(std::chrono::seconds(*seconds)), kLongestRetryAfter);
}

}  // namespace

Outcome::Kind outcome_of_status(unsigned status) {
  if (status >= 200 && status < 300) return Outcome::Kind::kDelivered;
  if (status == 410) return Outcome::Kind::kGone;
  if (status == 408 || status == 429 || status >= 500) return Outcome::Kind::kDown;
  return Outcome::Kind::kRefused;
}

WebhookSender::WebhookSender(Executor executor, std::string url, WebhookKeys keys, const WebhookOptions& options,
                             const Clock& clock)
    : url_(std::move(url)),
      keys_(std::move(keys)),
      clock_(clock),
      timeout_(options.timeout),
      client_(executor, client_options(options)) {}

awaitable<Outcome> WebhookSender::send(std::string message_id, std::string body, bool list) {
  Outcome outcome{.at = clock_.now()};
  const auto began = std::chrono::steady_clock::now();
  const auto timestamp = std::chrono::floor<std::chrono::seconds>(outcome.at).time_since_epoch().count();
  http::ClientRequest request{
      .method = "POST",
      .url = url_,
      .headers = {{"Content-Type", list ? "application/cloudevents-batch+json" : "application/cloudevents+json"},
                  {"webhook-id", message_id},
                  {"webhook-timestamp", std::to_string(timestamp)},
                  {"webhook-signature", webhook_signature(keys_, began, message_id, timestamp, body)}},
      .body = std::move(body),
      .idempotent = true,  // a receiver drops repeats by webhook-id
      .timeout = timeout_};
  const auto answer = co_await client_.send(std::move(request));
  outcome.latency = std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  if (!answer) {
    outcome.error = fmt::format("{} [{}]", answer.error().message, answer.error().code);
    co_return outcome;
  }
  outcome.status = answer->status;
  outcome.kind = outcome_of_status(answer->status);
  outcome.retry_after = retry_after_of(*answer);
  if (!outcome.delivered()) {
    outcome.error = fmt::format("the receiver answered {} {}", answer->status, http::reason_phrase(answer->status));
  }
  co_return outcome;
}

}  // namespace fencepost::outbox
