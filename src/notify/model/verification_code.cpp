#include "notify/model/verification_code.hpp"

#include <fmt/format.h>

namespace fencepost::notify {
namespace {

constexpr std::size_t kSaltBytes = 16;
constexpr std::uint64_t kCodes = 1'000'000;

}  // namespace

std::string make_code_salt(Random& random) {
  std::string salt(kSaltBytes, '\0');
  random.fill(std::as_writable_bytes(std::span(salt)));
  return salt;
}

std::string code_of(const Secret& key, std::string_view salt) {
  const auto digest = hmac_sha256(key.reveal(), std::string("verification code ").append(salt));
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | digest[i];
  return fmt::format("{:06}", number % kCodes);  // 2^64 is so much larger that every code is equally likely
}

Digest256 code_hash(const Secret& key, std::int64_t user_email_id, std::string_view code) {
  return hmac_sha256(key.reveal(), fmt::format("code of {}: {}", user_email_id, code));
}

}  // namespace fencepost::notify
