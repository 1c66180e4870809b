// The token of a session and the cookie that carries it. No I/O.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/digest.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "http/message.hpp"

namespace fencepost::identity {

// 256 random bits in hex.
Secret make_session_token(Random& random);
Digest256 session_hash(std::string_view token);

// The hash of the token that the request's cookie has; nothing when there is none. Behind TLS the cookie has another
// name, one that browsers take from this very host only.
std::optional<Digest256> presented_session(const http::Request& request, bool tls);

// The value of Set-Cookie.
std::string session_cookie(const Secret& token, bool tls, std::chrono::seconds lifetime);
std::string expired_cookie(bool tls);

}  // namespace fencepost::identity
