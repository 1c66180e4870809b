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

}  // namespace

KeyAuthenticator::KeyAuthenticator(pg::Database& database, const Clock& clock, const AuthenticatorOptions& options,
                                   Metrics& metrics)
    : database_(database),
      clock_(clock),
      options_(options),
      accepted_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "accepted"}})),
      refused_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "refused"}})),
      limited_total_(metrics.counter("auth_attempts_total", "API keys presented", {{"result", "rate_limited"}})) {}

awaitable<Result<http::Principal>> KeyAuthenticator::authenticate(const http::Request& request) {
  auto text = bearer(request);
  if (!text) text = request.path_secret();
  if (!text) {
    co_return refuse(
        {ErrorKind::kUnauthenticated,
         "no_api_key",
         "the request has no API key; send 'Authorization: Bearer <key>' (fencepost apikey create makes one)",
         {},
         {}});
  }
  const auto presented = parse_key(*text);
  if (!presented) co_return refuse(presented.error());
  auto [key, seen_before] = recall(presented->key_id);
  if (!key) {
    if (!seen_before) {
      if (auto allowed = may_guess(request.remote()); !allowed) co_return limit(allowed.error());
    }
    key = co_await look_up(presented->key_id);
  }
  if (!key) {
    count_guess(request.remote());
    co_return refuse({ErrorKind::kUnauthenticated, "bad_api_key", "the API key is not valid", {}, {}});
  }
  if (auto checked = check_key(*key, *presented, clock_.now()); !checked) co_return refuse(checked.error());
  if (auto charged = charge(key->key_id); !charged) co_return limit(charged.error());
  accepted_total_.Increment();
  co_return key->principal();
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

Result<void> KeyAuthenticator::may_guess(const std::string& remote) {
  const std::lock_guard lock(mutex_);
  const auto it = guessers_.find(remote);
  if (it == guessers_.end() || it->second.tokens(std::chrono::steady_clock::now()) >= 1) return {};
  return fail(too_many("too many unknown API keys from this address", std::chrono::seconds(1)));
}

void KeyAuthenticator::count_guess(const std::string& remote) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (guessers_.size() >= options_.remember_at_most) {
    std::erase_if(guessers_, [&](const auto& guesser) { return guesser.second.full(now); });
    if (guessers_.size() >= options_.remember_at_most) guessers_.clear();
  }
  const TokenBucket fresh(options_.bad_keys_burst, options_.bad_keys_per_second, now);
  // An empty bucket is no error here: may_guess refuses the next attempt.
  std::ignore = guessers_.try_emplace(remote, fresh).first->second.try_take(now);
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
