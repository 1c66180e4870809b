// Signatures of deliveries, as the Standard Webhooks specification defines them. Pure: no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/secret.hpp"
#include "runtime/completion.hpp"

namespace fencepost::outbox {

struct WebhookKey {
  Secret secret;
  Deadline valid_until = Deadline::max();
};
using WebhookKeys = std::vector<WebhookKey>;

// A new key: 32 random bytes.
Secret make_webhook_key(Random& random);

// "whsec_" and the key in base64: the form in which receivers configure it.
Secret webhook_secret_text(const Secret& key);

// The header `webhook-signature`: "v1,<base64 of HMAC-SHA256(key, id.timestamp.body)>", one for each key that is valid
// at `now`, separated by spaces.
std::string webhook_signature(const WebhookKeys& keys, Deadline now, std::string_view id, std::int64_t timestamp,
                              std::string_view body);

}  // namespace fencepost::outbox
