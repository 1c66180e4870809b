// API keys: their format and their permissions. No I/O.
//
// A key is `fp_<id>_<secret>`: the id, 32 hex digits, finds the row; the secret, 48 random hex digits, authenticates
// the caller. Only SHA-256 of the secret is stored: 192 random bits need no salt and no slow hash.
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
  std::optional<std::vector<std::string>> signers;    // none: every signer
  std::optional<std::vector<std::string>> guilds;     // none: every guild
  std::optional<std::vector<std::string>> contracts;  // none: every contract
  TimePoint created_at;
  std::optional<TimePoint> expires_at;
  std::optional<TimePoint> revoked_at;
  std::optional<TimePoint> last_used_at;

  // The caller that this key authenticates. Has a restriction "signer", "guild" or "contract" where the key lists
  // any.
  http::Principal principal() const;
};

// The parts of the key that a caller sent, not yet checked.
struct PresentedKey {
  Uuid key_id;
  Secret secret;
};

// Errors: kUnauthenticated "bad_api_key" when the text does not have the form `fp_<id>_<secret>`.
Result<PresentedKey> parse_key(std::string_view text);

struct NewKey {
  ApiKey key;
  Secret text;  // shown once, to the operator who creates the key
};

struct KeyRequest {
  std::string label;
  std::vector<std::string> scopes;
  std::optional<std::vector<std::string>> signers;
  std::optional<std::vector<std::string>> guilds;
  std::optional<std::vector<std::string>> contracts;
  std::optional<TimePoint> expires_at;
};

// Errors, kInvalid: "bad_label", "bad_scope", "bad_signer", "bad_guild", "bad_contract", "too_many_listed".
Result<NewKey> make_key(const KeyRequest& request, Uuid key_id, Random& random);

// The text of an existing key whose secret is known. Used by `up`, which keeps the same key across restarts.
Secret key_text(const Uuid& key_id, std::string_view secret);

// Errors, kUnauthenticated: "api_key_revoked", "api_key_expired".
Result<void> check_usable(const ApiKey& key, TimePoint now);

// Checks that the secret matches, in constant time, and that the key is usable at `now`. Errors, kUnauthenticated:
// "bad_api_key", and those of check_usable.
Result<void> check_key(const ApiKey& key, const PresentedKey& presented, TimePoint now);

}  // namespace fencepost::identity
