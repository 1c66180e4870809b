// The nonces of logins. A nonce carries its own expiry and a mark that only this installation can make, so handing one
// out stores nothing: asking for nonces cannot fill the database. That a nonce is used once is the store's matter,
// which remembers used ones until they expire. No I/O.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"

namespace fencepost::identity {

struct LoginNonce {
  std::string text;  // 80 hex digits
  TimePoint expires_at;
};

LoginNonce make_login_nonce(const Secret& key, Random& random, TimePoint now, std::chrono::milliseconds lifetime);

// When the nonce expires. Errors: kUnauthenticated `bad_login_nonce` for a nonce that was not made with this key,
// `login_expired` for one whose time is over.
Result<TimePoint> check_login_nonce(const Secret& key, std::string_view text, TimePoint now);

}  // namespace fencepost::identity
