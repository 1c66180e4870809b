#include "identity/api_key.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/hex.hpp"
#include "base/id_text.hpp"
#include "base/text.hpp"
#include "identity/scopes.hpp"

namespace fencepost::identity {
namespace {

constexpr std::string_view kPrefix = http::kApiKeyPrefix;
constexpr std::size_t kIdDigits = 32;
constexpr std::size_t kSecretBytes = 24;
constexpr std::size_t kMaxLabel = 100;
constexpr std::size_t kMaxListed = 1000;

Error bad_key() {
  return unauthenticated("bad_api_key", "the API key is not valid");
}

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<void> check_request(const KeyRequest& request) {
  if (request.label.empty() || request.label.size() > kMaxLabel ||
      std::ranges::any_of(request.label, [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return fail(invalid("bad_label", fmt::format("label: expected 1 to {} printable characters", kMaxLabel)));
  }
  if (request.scopes.empty()) return fail(invalid("bad_scope", "scopes: expected at least one scope, got none"));
  for (const auto& scope : request.scopes) {
    if (std::ranges::find(kScopes, scope) == kScopes.end()) {
      return fail(invalid("bad_scope", fmt::format("{} is not a scope{}\nScopes: {}", quote(scope),
                                                   did_you_mean(scope, kScopes), fmt::join(kScopes, ", "))));
    }
  }
  const auto listed = [](const auto& list) { return list.value_or(std::vector<std::string>{}); };
  const auto not_an_address = [](const std::string& text) {
    return fmt::format("'{}' is not an address: expected 0x and 40 lowercase hex digits", text);
  };
  for (const auto& signer : listed(request.signers)) {
    if (!is_address(signer)) return fail(invalid("bad_signer", not_an_address(signer)));
  }
  for (const auto& contract : listed(request.contracts)) {
    if (!is_address(contract)) return fail(invalid("bad_contract", not_an_address(contract)));
  }
  for (const auto& guild : listed(request.guilds)) {
    const auto id = parse_id(guild);
    if (!id || *id == 0) {
      return fail(invalid("bad_guild", fmt::format("'{}' is not a guild id: expected {}, not 0", guild, kIdForm)));
    }
  }
  const auto longest =
      std::max({listed(request.signers).size(), listed(request.guilds).size(), listed(request.contracts).size()});
  if (longest > kMaxListed) {
    return fail(
        invalid("too_many_listed", fmt::format("a key may list at most {} signers, guilds or contracts", kMaxListed)));
  }
  return {};
}

std::optional<std::vector<std::string>> each_once(std::optional<std::vector<std::string>> list) {
  if (!list) return list;
  std::ranges::sort(*list);
  const auto rest = std::ranges::unique(*list);
  list->erase(rest.begin(), rest.end());
  return list;
}

std::string hex_digits(std::span<const std::byte> bytes) {
  std::string out;
  for (const auto byte : bytes) fmt::format_to(std::back_inserter(out), "{:02x}", std::to_integer<unsigned>(byte));
  return out;
}

std::string_view as_text(const Digest256& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

http::Principal ApiKey::principal() const {
  http::Principal principal{.id = key_id.to_string(), .label = label, .scopes = scopes, .restrictions = {}};
  if (signers) principal.restrictions.emplace("signer", *signers);
  if (guilds) principal.restrictions.emplace("guild", *guilds);
  if (contracts) principal.restrictions.emplace("contract", *contracts);
  return principal;
}

Result<PresentedKey> parse_key(std::string_view text) {
  const auto size = kPrefix.size() + kIdDigits + 1 + 2 * kSecretBytes;
  if (text.size() != size || !text.starts_with(kPrefix)) return fail(bad_key());
  text.remove_prefix(kPrefix.size());
  const auto id = text.substr(0, kIdDigits);
  const auto secret = text.substr(kIdDigits + 1);
  if (!is_lower_hex(id) || text[kIdDigits] != '_' || !is_lower_hex(secret)) return fail(bad_key());
  const auto uuid = Uuid::parse(fmt::format("{}-{}-{}-{}-{}", id.substr(0, 8), id.substr(8, 4), id.substr(12, 4),
                                            id.substr(16, 4), id.substr(20)));
  if (!uuid) return fail(bad_key());
  return PresentedKey{*uuid, Secret(secret)};
}

Secret key_text(const Uuid& key_id, std::string_view secret) {
  auto id = key_id.to_string();
  std::erase(id, '-');
  return Secret::take(fmt::format("{}{}_{}", kPrefix, id, secret));
}

Result<NewKey> make_key(const KeyRequest& request, Uuid key_id, Random& random) {
  if (const auto checked = check_request(request); !checked) return fail(checked.error());
  std::array<std::byte, kSecretBytes> bytes;
  random.fill(bytes);
  const Secret secret = Secret::take(hex_digits(bytes));
  NewKey made;
  made.key.key_id = key_id;
  made.key.label = request.label;
  made.key.secret_hash = sha256(secret.reveal());
  for (const auto& scope : request.scopes) {  // in the caller's order
    if (std::ranges::find(made.key.scopes, scope) == made.key.scopes.end()) made.key.scopes.push_back(scope);
  }
  made.key.signers = each_once(request.signers);
  made.key.guilds = each_once(request.guilds);
  made.key.contracts = each_once(request.contracts);
  made.key.expires_at = request.expires_at;
  made.text = key_text(key_id, secret.reveal());
  return made;
}

Result<void> check_key(const ApiKey& key, const PresentedKey& presented, TimePoint now) {
  const auto hash = sha256(presented.secret.reveal());
  if (!constant_time_equal(as_text(hash), as_text(key.secret_hash))) return fail(bad_key());
  return check_usable(key, now);
}

Result<void> check_usable(const ApiKey& key, TimePoint now) {
  if (key.revoked_at) {
    return fail(unauthenticated("api_key_revoked", "the API key has been revoked"));
  }
  if (key.expires_at && *key.expires_at <= now) {
    return fail(unauthenticated("api_key_expired", "the API key has expired"));
  }
  return {};
}

}  // namespace fencepost::identity
