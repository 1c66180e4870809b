#include "outbox/webhook/signature.hpp"

#include <array>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/digest.hpp"

namespace fencepost::outbox {

Secret make_webhook_key(Random& random) {
  std::string bytes(32, '\0');
  random.fill(std::as_writable_bytes(std::span(bytes)));
  return Secret::take(std::move(bytes));
}

Secret webhook_secret_text(const Secret& key) {
  return Secret::take("whsec_" + to_base64(key.reveal()));
}

std::string webhook_signature(const WebhookKeys& keys, Deadline now, std::string_view id, std::int64_t timestamp,
                              std::string_view body) {
  const auto signed_text = fmt::format("{}.{}.{}", id, timestamp, body);
  std::string out;
  for (const auto& key : keys) {
    if (key.valid_until <= now) continue;
    const auto digest = hmac_sha256(key.secret.reveal(), signed_text);
    out += fmt::format("{}v1,{}", out.empty() ? "" : " ",
                       to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()}));
  }
  return out;
}

}  // namespace fencepost::outbox
