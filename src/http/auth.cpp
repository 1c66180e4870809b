#include "http/auth.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "http/errors.hpp"

namespace fencepost::http {
namespace {

constexpr std::string_view kAdmin = "admin";

}  // namespace

bool is_scope(std::string_view text) {
  if (text == kAdmin) return true;
  const auto colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos) return false;
  const auto domain = text.substr(0, colon);
  const auto verb = text.substr(colon + 1);
  return std::ranges::all_of(domain, [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; }) &&
         (verb == "read" || verb == "write" || verb == "operate");
}

std::string Principal::audit_name() const {
  return fmt::format("{} ({})", id, label);
}

bool Principal::has_scope(std::string_view scope) const {
  return std::ranges::any_of(scopes, [&](const std::string& have) { return have == kAdmin || have == scope; });
}

const std::vector<std::string>* Principal::restriction(std::string_view kind) const {
  const auto found = restrictions.find(kind);
  return found == restrictions.end() ? nullptr : &found->second;
}

bool Principal::allows(std::string_view kind, std::string_view wanted) const {
  const auto* const ids = restriction(kind);
  return ids == nullptr || std::ranges::find(*ids, wanted) != ids->end();
}

Access Access::scope(std::string scope) {
  if (!is_scope(scope)) {
    throw Exception(internal("bad_scope",
                             fmt::format("'{}' is not a scope; expected <domain>:read|write|operate or admin", scope)));
  }
  return Access(Kind::kScope, std::move(scope));
}

Access Access::parse(std::string_view text) {
  for (const auto& access : {open(), authenticated(), key_or_wallet(), wallet()}) {
    if (access.to_string() == text) return access;
  }
  return scope(std::string(text));
}

Result<void> Access::check(const Principal& caller) const {
  switch (kind_) {
    case Kind::kOpen:
    case Kind::kKeyOrWallet:
      return {};
    case Kind::kAuthenticated:
      if (!caller.user) return {};
      return fail(forbidden("api_key_required", "This needs an API key: a wallet's session is not enough."));
    case Kind::kWallet:
      if (caller.user) return {};
      return fail(forbidden("wallet_login_required",
                            "This belongs to a person: log in with a wallet (POST /api/v1/auth/verify)."));
    case Kind::kScope:
      if (caller.has_scope(scope_)) return {};
      return fail(insufficient_scope(scope_));
  }
  std::unreachable();
}

std::string Access::to_string() const {
  switch (kind_) {
    case Kind::kOpen:
      return "open";
    case Kind::kAuthenticated:
      return "authenticated";
    case Kind::kKeyOrWallet:
      return "key_or_wallet";
    case Kind::kWallet:
      return "wallet";
    case Kind::kScope:
      return scope_;
  }
  std::unreachable();
}

}  // namespace fencepost::http
