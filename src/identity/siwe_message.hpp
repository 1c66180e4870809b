// Sign-In with Ethereum (EIP-4361): the message that a wallet signs. No I/O.
//
//   example.org wants you to sign in with your Ethereum account:
//   0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266
//
//   Sign in to Fencepost.
//
//   URI: https://example.org
//   Version: 1
//   Chain ID: 1
//   Nonce: 5ecd8f…
//   Issued At: 2026-11-18T06:00:00Z
//   Expiration Time: 2026-11-18T06:10:00Z
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace fencepost::identity {

struct SiweMessage {
  std::optional<std::string> scheme;
  std::string domain;   // host, with a port unless it is the scheme's own
  std::string address;  // stored form
  std::string uri;
  std::int64_t chain_id = 0;
  std::string nonce;
  TimePoint issued_at;
  std::optional<TimePoint> expires_at;
  std::optional<TimePoint> not_before;
};

inline constexpr std::size_t kSiweMaxBytes = 4096;

// Reads the message as the specification's grammar has it, every line in its place; nothing is trimmed or guessed. What
// a login does not need (statement, request id, resources) is checked and dropped. Errors: kUnauthenticated
// `bad_login_message`, which says what is wrong where.
Result<SiweMessage> parse_siwe(std::string_view text);

// Where this server is reached, as a message must name it.
struct LoginPlace {
  std::string scheme;  // http or https
  std::string domain;  // host, with a port unless it is the scheme's own

  std::string origin() const { return scheme + "://" + domain; }
};

// Clocks of people's machines may be ahead of ours by so much.
inline constexpr std::chrono::minutes kLoginClockSkew{2};

// Checks what a message says about where and when it is valid; not its nonce and not its signature. Errors:
// kUnauthenticated `wrong_login_domain`, `login_expired`, `login_not_yet_valid`.
Result<void> check_siwe(const SiweMessage& message, const LoginPlace& place, TimePoint now);

}  // namespace fencepost::identity
