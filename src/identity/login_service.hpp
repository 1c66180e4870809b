// Logins: nonces, wallets' signatures, and the sessions that they begin. Any loop may call.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "http/message.hpp"
#include "identity/key_authenticator.hpp"
#include "identity/login_nonce.hpp"
#include "identity/login_store.hpp"
#include "identity/options.hpp"
#include "identity/public_url.hpp"
#include "identity/wallet_signature.hpp"
#include "pg/database.hpp"

namespace fencepost::identity {

struct NewSession {
  Secret token;
  TimePoint expires_at;
};

class LoginService {
 public:
  struct Parts {
    pg::Database& database;
    const Clock& clock;
    Random& random;
    const Chains& chains;
    const PublicUrl& public_url;
    KeyAuthenticator& keys;
  };
  LoginService(Parts parts, const LoginOptions& options);

  // Reads the secret of this installation. Call once, after the migrations.
  awaitable<> prepare();

  // Errors: kUnavailable `not_ready` before `prepare`.
  Result<LoginNonce> nonce();
  // Counts an attempt to log in from that address. Errors: kRateLimited `rate_limited`.
  Result<void> may_try(const std::string& remote) { return attempts_.charge(remote); }
  // Checks the message, its nonce and its signature, and begins a session of the wallet. Errors: kUnauthenticated of
  // siwe_message.hpp, login_nonce.hpp and wallet_signature.hpp, and `login_replayed`; kUnavailable
  // `login_chain_unavailable`.
  awaitable<Result<NewSession>> log_in(std::string message, Bytes signature);
  // Begins a session that stands for an API key. Errors: as KeyAuthenticator.
  awaitable<Result<NewSession>> exchange_key(std::string key, std::string remote);

  const LoginOptions& options() const { return options_; }
  const PublicUrl& public_url() const { return parts_.public_url; }
  pg::Pool& pool() { return parts_.database.pool(); }

 private:
  Result<Secret> secret() const;

  Parts parts_;
  LoginOptions options_;
  RateLimit attempts_;  // by address of the client
  ContractChecks contract_checks_;
  std::atomic<std::shared_ptr<const Secret>> secret_;
};

// Authenticates by an API key, as KeyAuthenticator, or else by the cookie of a session. A session only changes
// something for a page of our own origin.
class CallerAuthenticator final : public http::Authenticator {
 public:
  CallerAuthenticator(pg::Database& database, KeyAuthenticator& keys, const PublicUrl& public_url,
                      const LoginOptions& options);

  // Errors: as KeyAuthenticator; kUnauthenticated `no_session`; kForbidden `wrong_origin`.
  awaitable<Result<http::Principal>> authenticate(const http::Request& request) override;

 private:
  pg::Database& database_;
  KeyAuthenticator& keys_;
  const PublicUrl& public_url_;
  LoginOptions options_;
  RateLimit requests_;  // of wallets, by wallet
};

// Whether a request with this Origin header comes from a page of this server; `required`: also without the header.
bool is_own_origin(const http::Request& request, const PublicUrl& public_url, bool required);

}  // namespace fencepost::identity
