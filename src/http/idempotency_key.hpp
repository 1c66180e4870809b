// The header `Idempotency-Key`: an alternative to the body's member (`requestId`, `idempotencyKey`) for the key that
// makes a request safe to repeat. Every route whose body has such a member accepts the header, under the same rules.
//
// All functions throw Exception kInvalid; the server turns it into the answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace fencepost::http {

inline constexpr std::string_view kIdempotencyHeader = "Idempotency-Key";

// The header's value as sent, including quotes; nothing without the header. Throws `bad_idempotency_key` when the value
// is not a request id (base/request_id.hpp) or the header is repeated.
std::optional<std::string> read_idempotency_key(const Request& request);

// The key of a request, from the header or from the body's member `field`; nothing when neither is given. Throws
// `idempotency_key_mismatch` when both are given and differ.
std::optional<std::string> one_key(std::optional<std::string> header, std::optional<std::string> body,
                                   std::string_view field);

// For a batch, whose items have their own keys: throws `idempotency_key_in_batch` when the header is given.
void refuse_idempotency_key(const Request& request);

}  // namespace fencepost::http
