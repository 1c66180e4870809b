#include "identity/login_nonce.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/hex.hpp"

namespace fencepost::identity {
namespace {

constexpr std::size_t kTimeDigits = 16;
constexpr std::size_t kRandomBytes = 16;
constexpr std::size_t kBodyDigits = kTimeDigits + 2 * kRandomBytes;
constexpr std::size_t kMarkDigits = 32;

std::string mark_of(const Secret& key, std::string_view body) {
  return hmac_sha256_hex(key.reveal(), fmt::format("login nonce {}", body)).substr(0, kMarkDigits);
}

}  // namespace

LoginNonce make_login_nonce(const Secret& key, Random& random, TimePoint now, std::chrono::milliseconds lifetime) {
  std::array<std::uint8_t, kRandomBytes> bytes{};
  random.fill(std::as_writable_bytes(std::span(bytes)));
  const auto expires_at = now + lifetime;
  auto body = fmt::format("{:016x}{}", expires_at.time_since_epoch().count(), to_hex(bytes));
  return {.text = body + mark_of(key, body), .expires_at = expires_at};
}

Result<TimePoint> check_login_nonce(const Secret& key, std::string_view text, TimePoint now) {
  const auto body = text.substr(0, kBodyDigits);
  std::int64_t micros = 0;
  const bool ours = text.size() == kBodyDigits + kMarkDigits &&
                    constant_time_equal(text.substr(kBodyDigits), mark_of(key, body)) &&
                    std::from_chars(body.data(), body.data() + kTimeDigits, micros, 16).ec == std::errc{};
  if (!ours) {
    return fail(unauthenticated("bad_login_nonce", "The nonce is not one that this server gave: ask for a new one."));
  }
  const TimePoint expires_at{std::chrono::microseconds(micros)};
  if (expires_at <= now) {
    return fail(unauthenticated("login_expired", "The nonce has expired: ask for a new one and sign again."));
  }
  return expires_at;
}

}  // namespace fencepost::identity
