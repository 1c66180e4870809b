// API keys: what one looks like and what it may do. No I/O.
//
// A key is `fp_<id>_<secret>`: the id, 32 hex digits, finds the row; the secret, 48 hex digits of randomness, proves
// the right to it. Only SHA-256 of the secret is stored: 192 random bits need no salt and no slow hash.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/secret.hpp"
#include "base/uuid.hpp"
#include "http/auth.hpp"

namespace fencepost::identity {

struct ApiKey {
  Uuid key_id;
  std::string label;
  Digest256 secret_hash{};
  std::vector<std::string> scopes;
  std::optional<std::vector<std::string>> signers;  // none: every signer
  std::optional<std::vector<std::string>> guilds;   // none: every guild
  TimePoint created_at;
  std::optional<TimePoint> expires_at;
  std::optional<TimePoint> revoked_at;
  std::optional<TimePoint> last_used_at;

  // Restricted by the kinds "signer" and "guild", where the key lists any.
  http::Principal principal() const;
};

// What a caller sent, taken apart.
struct PresentedKey {
  Uuid key_id;
  Secret secret;
};

// kUnauthenticated "bad_api_key" for anything that is not of the form above.
Result<PresentedKey> parse_key(std::string_view text);

struct NewKey {
  ApiKey key;
  Secret text;  // shown once, to whoever asked for it
};

struct KeyRequest {
  std::string label;
  std::vector<std::string> scopes;
  std::optional<std::vector<std::string>> signers;
  std::optional<std::vector<std::string>> guilds;
  std::optional<TimePoint> expires_at;
};

// kInvalid: "bad_label", "bad_scope", "bad_signer", "bad_guild".
Result<NewKey> make_key(const KeyRequest& request, Uuid key_id, Random& random);

// The text of an existing key whose secret is known: used by `up`, whose key stays the same from start to start.
Secret key_text(const Uuid& key_id, std::string_view secret);

// Whether the secret is the key's and the key may still be used at `now`. In constant time as to the secret.
Result<void> check_key(const ApiKey& key, const PresentedKey& presented, TimePoint now);

}  // namespace fencepost::identity
