#include "identity/login_service.hpp"

#include "http/errors.hpp"
#include "identity/session_token.hpp"
#include "identity/siwe_message.hpp"

namespace fencepost::identity {
namespace {

// Behind a proxy, all people have one address.
constexpr RateLimitOptions kAttempts{.per_second = 5, .burst = 100};
// Much less than an API key has: everyone can have any number of wallets.
constexpr RateLimitOptions kWalletRequests{.per_second = 20, .burst = 200};

bool changes_something(http::Verb verb) {
  return verb != http::Verb::kGet && verb != http::Verb::kHead && verb != http::Verb::kOptions;
}

http::Principal wallet_principal(const Session& session) {
  return {.id = "wallet/" + session.wallet,
          .label = session.wallet,
          .scopes = {"timelock:read"},
          .restrictions = {},
          .user = session.user_id};
}

}  // namespace

bool is_own_origin(const http::Request& request, const PublicUrl& public_url, bool required) {
  const auto origins = request.headers("origin");
  if (origins.empty()) return !required;
  return origins.size() == 1 && origins.front() == public_url.place().origin();
}

LoginService::LoginService(Parts parts, const LoginOptions& options)
    : parts_(parts), options_(options), attempts_(kAttempts, "too many logins from this address") {}

awaitable<> LoginService::prepare() {
  secret_.store(std::make_shared<const Secret>(co_await installation_secret(parts_.database.pool())));
}

Result<Secret> LoginService::secret() const {
  const auto secret = secret_.load();
  if (!secret) return fail(unavailable("not_ready", "The node is starting: try again.").after(std::chrono::seconds(1)));
  return *secret;
}

Result<LoginNonce> LoginService::nonce() {
  const auto key = secret();
  if (!key) return fail(key.error());
  return make_login_nonce(*key, parts_.random, parts_.clock.now(), options_.nonce_ttl);
}

awaitable<Result<NewSession>> LoginService::log_in(std::string message, Bytes signature) {
  const auto key = secret();
  if (!key) co_return fail(key.error());
  const auto now = parts_.clock.now();
  const auto read = parse_siwe(message);
  if (!read) co_return fail(read.error());
  if (const auto checked = check_siwe(*read, parts_.public_url.place(), now); !checked) co_return fail(checked.error());
  const auto nonce_expiry = check_login_nonce(*key, read->nonce, now);
  if (!nonce_expiry) co_return fail(nonce_expiry.error());
  const auto signed_by = co_await check_wallet_signature(parts_.chains, read->chain_id, read->address, message,
                                                         std::move(signature), contract_checks_);
  if (!signed_by) co_return fail(signed_by.error());

  auto token = make_session_token(parts_.random);
  const auto expires_at = co_await begin_wallet_session(
      pool(), {.nonce = read->nonce, .nonce_expires_at = *nonce_expiry, .wallet = read->address},
      session_hash(token.reveal()), options_.session_lifetime);
  if (!expires_at) {
    co_return fail(unauthenticated("login_replayed", "The nonce was used before: ask for a new one and sign again."));
  }
  co_return NewSession{std::move(token), *expires_at};
}

awaitable<Result<NewSession>> LoginService::exchange_key(std::string key, std::string remote) {
  const auto caller = co_await parts_.keys.check(key, remote);
  if (!caller) co_return fail(caller.error());
  auto token = make_session_token(parts_.random);
  const auto expires_at = co_await begin_key_session(pool(), Uuid::parse(caller->id).value(),
                                                     session_hash(token.reveal()), options_.session_lifetime);
  co_return NewSession{std::move(token), expires_at};
}

CallerAuthenticator::CallerAuthenticator(pg::Database& database, KeyAuthenticator& keys, const PublicUrl& public_url,
                                         const LoginOptions& options)
    : database_(database),
      keys_(keys),
      public_url_(public_url),
      options_(options),
      requests_(kWalletRequests, "too many requests of this wallet") {}

awaitable<Result<http::Principal>> CallerAuthenticator::authenticate(const http::Request& request) {
  if (KeyAuthenticator::presented(request)) co_return co_await keys_.authenticate(request);
  const bool tls = public_url_.place().scheme == "https";
  const auto token_hash = presented_session(request, tls);
  if (!token_hash) co_return co_await keys_.authenticate(request);
  const auto session = co_await find_session(database_.pool(), *token_hash, options_.session_idle);
  if (!session) co_return fail(unauthenticated("no_session", "The session has ended: log in again."));
  if (changes_something(request.verb()) && !is_own_origin(request, public_url_, true)) {
    co_return fail(http::forbidden("wrong_origin", "The request does not come from a page of this server.")
                       .with("expected", public_url_.place().origin()));
  }
  if (session->key_id) co_return co_await keys_.authenticate_as(*session->key_id);
  if (auto allowed = requests_.charge(session->wallet); !allowed) co_return fail(allowed.error());
  co_return wallet_principal(*session);
}

}  // namespace fencepost::identity
