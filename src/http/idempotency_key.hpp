// The header `Idempotency-Key`: another place for the key by which a request may be repeated without doing its work
// twice. It counts wherever a body has a member for such a key (`requestId`, `idempotencyKey`), under the same rules.
//
// Everything here throws Exception kInvalid; the server answers with it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"

namespace fencepost::http {

inline constexpr std::string_view kIdempotencyHeader = "Idempotency-Key";

// The header's text as it stands, quotes included; nothing without the header. `bad_idempotency_key` unless it is a
// request id (base/request_id.hpp), and when the header is repeated.
std::optional<std::string> read_idempotency_key(const Request& request);

// The key of a request: that of the header or of the body's member `field`, whichever is given.
// `idempotency_key_mismatch` when both are and differ.
std::optional<std::string> one_key(std::optional<std::string> header, std::optional<std::string> body,
                                   std::string_view field);

// For a batch, whose items have keys of their own: `idempotency_key_in_batch` when the header is given.
void refuse_idempotency_key(const Request& request);

}  // namespace fencepost::http
