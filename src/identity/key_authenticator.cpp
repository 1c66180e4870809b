#include "identity/key_authenticator.hpp"

#include <tuple>

#include "base/text.hpp"
#include "http/message.hpp"
#include "identity/api_key_store.hpp"

namespace fencepost::identity {
namespace {

// The key in "Bearer <key>"; the scheme's case does not matter (RFC 9110).
std::optional<std::string_view> bearer(const http::Request& request) {
  constexpr std::string_view kScheme = "bearer ";
  auto header = request.header("authorization");
  if (!header || header->size() <= kScheme.size()) return std::nullopt;
  if (!equal_ignoring_case(header->substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return header->substr(kScheme.size());
}

Error too_many(std::string message, std::chrono::seconds retry_after) {
  return Error{ErrorKind::kRateLimited, "rate_limited", std::move(message), {}, {}}.after(retry_after);
}

Error unknown_key() {
  return unauthenticated("bad_api_key", "the API key is not valid");
}

}  // namespace

KeyAuthenticator::KeyAuthenticator(pg::Database& database, const Clock& clock, const AuthenticatorOptions& options,
                                   Metrics& metrics)
    : database_(database),
      clock_(clock),
      options_(options),
      accepted_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "accepted"}})),
      refused_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "refused"}})),
      limited_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "rate_limited"}})),
      guesses_({.per_second = options.bad_keys_per_second,
                .burst = options.bad_keys_burst,
                .remember_at_most = options.remember_at_most},
               "too many unknown API keys from this address") {}

std::optional<std::string_view> KeyAuthenticator::presented(const http::Request& request) {
  const auto text = bearer(request);
  return text ? text : request.path_secret();
}

awaitable<Result<http::Principal>> KeyAuthenticator::authenticate(const http::Request& request) {
  const auto text = presented(request);
  if (!text) {
    co_return refuse(unauthenticated(
        "no_api_key",
        "the request has no API key; send 'Authorization: Bearer <key>' (fencepost apikey create makes one)"));
  }
  co_return co_await check(*text, request.remote());
}

awaitable<Result<http::Principal>> KeyAuthenticator::check(std::string_view text, const std::string& remote) {
  const auto presented = parse_key(text);
  if (!presented) co_return refuse(presented.error());
  auto [key, seen_before] = recall(presented->key_id);
  if (!key) {
    if (!seen_before) {
      if (auto allowed = guesses_.check(remote); !allowed) co_return limit(allowed.error());
    }
    key = co_await look_up(presented->key_id);
  }
  if (!key) {
    std::ignore = guesses_.charge(remote);  // an empty bucket is no error here: the next attempt is refused
    co_return refuse(unknown_key());
  }
  if (auto checked = check_key(*key, *presented, clock_.now()); !checked) co_return refuse(checked.error());
  co_return admit(*key);
}

awaitable<Result<http::Principal>> KeyAuthenticator::authenticate_as(Uuid key_id) {
  auto key = recall(key_id).first;
  if (!key) key = co_await look_up(key_id);
  if (!key) co_return refuse(unknown_key());
  if (auto checked = check_usable(*key, clock_.now()); !checked) co_return refuse(checked.error());
  co_return admit(*key);
}

Result<http::Principal> KeyAuthenticator::admit(const ApiKey& key) {
  if (auto charged = charge(key.key_id); !charged) return limit(charged.error());
  accepted_total_.Increment();
  return key.principal();
}

awaitable<std::shared_ptr<const ApiKey>> KeyAuthenticator::look_up(const Uuid& key_id) {
  // Read before the query: if the key changes during the query, the cached entry is stale at once.
  const auto epoch = epoch_.load();
  ApiKeyStore store(database_.pool());
  auto found = co_await store.find(key_id);
  if (!found) co_return nullptr;
  auto key = std::make_shared<const ApiKey>(std::move(*found));
  remember(key, epoch);
  co_return key;
}

std::pair<std::shared_ptr<const ApiKey>, bool> KeyAuthenticator::recall(const Uuid& key_id) {
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(key_id);
  if (it == known_.end()) return {nullptr, false};
  const bool fresh = it->second.epoch == epoch_.load() && it->second.until > std::chrono::steady_clock::now();
  return {fresh ? it->second.key : nullptr, true};
}

void KeyAuthenticator::remember(std::shared_ptr<const ApiKey> key, std::uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  if (known_.size() >= options_.remember_at_most) known_.clear();
  const auto id = key->key_id;
  known_.insert_or_assign(id, Known{std::move(key), std::chrono::steady_clock::now() + options_.remember, epoch});
}

Result<void> KeyAuthenticator::charge(const Uuid& key_id) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  auto it = accounts_.find(key_id);
  if (it == accounts_.end()) {
    const TokenBucket bucket(options_.burst, options_.requests_per_second, now);
    it = accounts_.emplace(key_id, Account{bucket, std::nullopt}).first;
  }
  it->second.unsaved_use = clock_.now();
  const auto taken = it->second.bucket.try_take(now);
  if (taken) return {};
  return fail(too_many("too many requests with this API key", std::chrono::ceil<std::chrono::seconds>(taken.error())));
}

Result<http::Principal> KeyAuthenticator::refuse(Error error) {
  refused_total_.Increment();
  return fail(std::move(error));
}

Result<http::Principal> KeyAuthenticator::limit(Error error) {
  limited_total_.Increment();
  return fail(std::move(error));
}

awaitable<> KeyAuthenticator::save_uses(std::chrono::milliseconds limit) {
  std::vector<std::pair<Uuid, TimePoint>> uses;
  {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    for (auto it = accounts_.begin(); it != accounts_.end();) {
      auto& account = it->second;
      if (account.unsaved_use) {
        uses.emplace_back(it->first, *account.unsaved_use);
        account.unsaved_use.reset();
        ++it;
      } else {
        it = account.bucket.full(now) ? accounts_.erase(it) : std::next(it);
      }
    }
  }
  if (uses.empty()) co_return;
  ApiKeyStore store(database_.pool());
  co_await store.touch(uses, limit);
}

}  // namespace fencepost::identity
