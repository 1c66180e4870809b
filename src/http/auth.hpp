// The caller of a request, and the access that a route requires. The identity module implements Authenticator; the
// server calls it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/async.hpp"

namespace fencepost::http {

class Request;

// Every API key begins with this; a path segment that contains it is never logged.
inline constexpr std::string_view kApiKeyPrefix = "fp_";

// A scope is `<domain>:read`, `<domain>:write`, `<domain>:operate` or `admin`. `admin` implies all scopes; no other
// scope implies another.
bool is_scope(std::string_view text);

// Kind of resource → the ids that the caller may use. The domains define the kinds (tx has "signer", transfer has
// "guild"); this module does not interpret kinds or ids.
using Restrictions = std::map<std::string, std::vector<std::string>, std::less<>>;

struct Principal {
  std::string id;     // of the key, or "wallet/0x…"; stable, used by audit rows and rate limits
  std::string label;  // for display
  std::vector<std::string> scopes;
  Restrictions restrictions;         // a kind that is absent is not restricted
  std::optional<std::int64_t> user;  // the person who has logged in with a wallet; none for an API key

  // "id (label)": how audit rows name the caller.
  std::string audit_name() const;
  bool has_scope(std::string_view scope) const;
  // The ids of that kind that the caller may use, in the order in which they were given; nullptr when all are allowed.
  const std::vector<std::string>* restriction(std::string_view kind) const;
  // Whether the caller may use that id. An absent kind allows every id, an empty list none. Ids are compared byte by
  // byte, so a domain passes them in the form in which it stores them.
  bool allows(std::string_view kind, std::string_view wanted) const;
};

// The access that a route requires of its caller.
class Access {
 public:
  static Access open() { return Access(Kind::kOpen, {}); }
  // Any valid key.
  static Access authenticated() { return Access(Kind::kAuthenticated, {}); }
  // Any valid key, or a person who has logged in with a wallet.
  static Access key_or_wallet() { return Access(Kind::kKeyOrWallet, {}); }
  // Only a person who has logged in with a wallet.
  static Access wallet() { return Access(Kind::kWallet, {}); }
  // Throws Exception `bad_scope` when the text is not a scope: a table of routes is checked as it is built.
  static Access scope(std::string scope);
  // Reads the output of to_string. Throws as `scope` does.
  static Access parse(std::string_view text);

  bool is_open() const { return kind_ == Kind::kOpen; }
  // Errors, kForbidden: "insufficient_scope", "api_key_required", "wallet_login_required".
  Result<void> check(const Principal& caller) const;
  // "open", "authenticated", "key_or_wallet", "wallet" or the scope.
  std::string to_string() const;

 private:
  enum class Kind { kOpen, kAuthenticated, kKeyOrWallet, kWallet, kScope };
  Access(Kind kind, std::string scope) : kind_(kind), scope_(std::move(scope)) {}

  Kind kind_;
  std::string scope_;
};

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // Called on the connection's loop, by several loops concurrently. Errors: kUnauthenticated when the credentials are
  // missing or wrong, kRateLimited with retry_after, kUnavailable when the credentials cannot be checked now.
  virtual awaitable<Result<Principal>> authenticate(const Request& request) = 0;
};

}  // namespace fencepost::http
