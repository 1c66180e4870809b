#include "identity/session_token.hpp"

#include <array>

#include <fmt/format.h>

#include "base/hex.hpp"

namespace fencepost::identity {
namespace {

constexpr std::size_t kTokenBytes = 32;

std::string_view cookie_name(bool tls) {
  return tls ? "__Host-fencepost_session" : "fencepost_session";
}

std::string cookie(std::string_view value, bool tls, std::chrono::seconds lifetime) {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{}", cookie_name(tls), value, lifetime.count(),
                     tls ? "; Secure" : "");
}

// The value of the first cookie with that name: browsers send the most specific one first.
std::optional<std::string_view> cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const auto end = std::min(header.find(';'), header.size());
    auto pair = header.substr(0, end);
    header.remove_prefix(std::min(end + 1, header.size()));
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('=')) return pair.substr(name.size() + 1);
  }
  return std::nullopt;
}

// Nothing else is looked up.
bool is_token(std::string_view text) {
  return text.size() == 2 * kTokenBytes && text.find_first_not_of("0123456789abcdef") == text.npos;
}

}  // namespace

Secret make_session_token(Random& random) {
  std::array<std::uint8_t, kTokenBytes> bytes{};
  random.fill(std::as_writable_bytes(std::span(bytes)));
  return Secret::take(to_hex(bytes));
}

Digest256 session_hash(std::string_view token) {
  return sha256(token);
}

std::optional<Digest256> presented_session(const http::Request& request, bool tls) {
  for (const auto header : request.headers("cookie")) {
    if (const auto token = cookie_value(header, cookie_name(tls)); token && is_token(*token)) return sha256(*token);
  }
  return std::nullopt;
}

std::string session_cookie(const Secret& token, bool tls, std::chrono::seconds lifetime) {
  return cookie(token.reveal(), tls, lifetime);
}

std::string expired_cookie(bool tls) {
  return cookie("", tls, std::chrono::seconds(0));
}

}  // namespace fencepost::identity
