#include "identity/siwe_message.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

using namespace std::chrono_literals;

const std::string kHead =
    "example.org wants you to sign in with your Ethereum account:\n"
    "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266\n\n";
const std::string kFields =
    "\nURI: https://example.org/login\nVersion: 1\nChain ID: 31337\nNonce: 0123456789abcdef\n"
    "Issued At: 2026-11-18T06:00:00.000Z";
const LoginPlace kPlace{.scheme = "https", .domain = "example.org"};
const TimePoint kNow = parse_rfc3339("2026-11-18T06:00:30Z").value();

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(siwe_message, is_read_with_and_without_what_is_optional) {
  const auto plain = parse_siwe(kHead + kFields).value();
  EXPECT_EQ(plain.domain, "example.org");
  EXPECT_EQ(plain.address, "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
  EXPECT_EQ(plain.uri, "https://example.org/login");
  EXPECT_EQ(plain.chain_id, 31337);
  EXPECT_EQ(plain.nonce, "0123456789abcdef");
  EXPECT_EQ(plain.issued_at, parse_rfc3339("2026-11-18T06:00:00Z"));
  EXPECT_FALSE(plain.expires_at);
  const auto full = parse_siwe("https://" + kHead + "Sign in to Fencepost.\n" + kFields +
                               "\nExpiration Time: 2026-11-18T06:10:00Z\nNot Before: 2026-11-18T05:00:00Z\n"
                               "Request ID: abc\nResources:\n- https://example.org/a\n- ipfs://b")
                        .value();
  EXPECT_EQ(full.scheme, "https");
  EXPECT_EQ(full.domain, "example.org");
  EXPECT_EQ(full.expires_at, parse_rfc3339("2026-11-18T06:10:00Z"));
  EXPECT_EQ(full.not_before, parse_rfc3339("2026-11-18T05:00:00Z"));
  EXPECT_TRUE(parse_siwe(kHead + kFields + "\nResources:"));
}

TEST(siwe_message, everything_else_is_refused) {
  const auto good = kHead + kFields;
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"", "The first line"},
      {replaced(good, " wants you", " wants  you"), "The first line"},
      {replaced(good, "0xf39F", "0xf39f"), "EIP-55"},
      {replaced(good, "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"),
       "EIP-55"},
      {replaced(good, "92266\n\n\n", "92266\n\n"), "empty line after the statement"},
      {kHead + "two\nlines\n" + kFields, "empty line after the statement"},
      {replaced(good, "Version: 1", "Version: 2"), "Version must be 1"},
      {replaced(good, "Version: 1\n", ""), "must begin with 'Version: '"},
      {replaced(good, "Chain ID: 31337", "Chain ID: 031337"), "Chain ID"},
      {replaced(good, "Chain ID: 31337", "Chain ID: 0"), "Chain ID"},
      {replaced(good, "Chain ID: 31337", "Chain ID: 1x"), "Chain ID"},
      {replaced(good, "Nonce: 0123456789abcdef", "Nonce: 0123"), "Nonce"},
      {replaced(good, "Nonce: 0123456789abcdef", "Nonce: 0123-56789"), "Nonce"},
      {replaced(good, "2026-11-18T06:00:00.000Z", "today"), "Issued At"},
      {good + "\n", "not expected"},
      {good + "\nNot Before: 2026-11-18T05:00:00Z\nExpiration Time: 2026-11-18T06:10:00Z", "not expected"},
      {good + "\nNonce: ffffffffffffffff", "not expected"},
      {replaced(good, "\nURI", "\r\nURI"), "printable ASCII"},
      {replaced(good, "example.org wants", "ex\xc3\xa4mple.org wants"), "printable ASCII"},
      {good + "\nRequest ID: " + std::string(kSiweMaxBytes, 'a'), "more than"},
  };
  for (const auto& [text, why] : wrong) {
    const auto read = parse_siwe(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, "bad_login_message");
    EXPECT_TRUE(read.error().message.contains(why)) << read.error().message << "\n" << text;
  }
}

TEST(siwe_message, is_valid_at_its_place_and_in_its_time) {
  const auto message = parse_siwe(kHead + kFields + "\nExpiration Time: 2026-11-18T06:10:00Z").value();
  EXPECT_TRUE(check_siwe(message, kPlace, kNow));
  const auto code = [&](const SiweMessage& changed, TimePoint now = kNow, const LoginPlace& place = kPlace) {
    const auto checked = check_siwe(changed, place, now);
    return checked ? std::string("fine") : checked.error().code;
  };
  EXPECT_EQ(code(message, kNow, {.scheme = "https", .domain = "example.org:8443"}), "wrong_login_domain");
  EXPECT_EQ(code(message, kNow, {.scheme = "http", .domain = "example.org"}), "wrong_login_domain");
  for (const auto* uri : {"https://example.org.evil.com", "https://evil.com/?https://example.org", "example.org",
                          "https://user@example.org", "javascript://example.org"}) {
    auto elsewhere = message;
    elsewhere.uri = uri;
    EXPECT_EQ(code(elsewhere), "wrong_login_domain") << uri;
  }
  for (const auto* scheme : {"http", "javascript", "evil.example login ", ""}) {
    auto elsewhere = message;
    elsewhere.scheme = scheme;
    EXPECT_EQ(code(elsewhere), "wrong_login_domain") << scheme;
  }
  EXPECT_EQ(code(message, *message.expires_at), "login_expired");
  EXPECT_EQ(code(message, *message.expires_at - 1us), "fine");
  EXPECT_EQ(code(message, message.issued_at - kLoginClockSkew - 1us), "login_not_yet_valid");
  auto later = message;
  later.not_before = kNow + 1s;
  EXPECT_EQ(code(later), "login_not_yet_valid");
}

}  // namespace
}  // namespace fencepost::identity
