#include "identity/session_token.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

std::optional<Digest256> presented(std::vector<std::string> headers, bool tls = false) {
  http::Request request;
  for (const auto& header : headers) request.add_header("Cookie", header);
  return presented_session(request, tls);
}

TEST(session_token, is_found_among_the_cookies_of_the_host) {
  EXPECT_EQ(presented({"fencepost_session=abc"}), sha256("abc"));
  EXPECT_EQ(presented({"a=1; fencepost_session=abc; b=2"}), sha256("abc"));
  EXPECT_EQ(presented({"a=1", "fencepost_session=abc"}), sha256("abc"));
  EXPECT_EQ(presented({"fencepost_session=abc; fencepost_session=def"}), sha256("abc"));
  for (const auto* other : {"", "fencepost_session", "fencepost_session=", "xfencepost_session=abc",
                            "a=fencepost_session=x", "fencepost_sessions=abc", ";;;="}) {
    EXPECT_FALSE(presented({other})) << other;
  }
}

// A cookie that a page without TLS could have set does not count behind TLS.
TEST(session_token, has_a_name_of_its_own_behind_tls) {
  EXPECT_FALSE(presented({"fencepost_session=abc"}, true));
  EXPECT_EQ(presented({"__Host-fencepost_session=abc"}, true), sha256("abc"));
  const Secret token("abc");
  EXPECT_EQ(session_cookie(token, true, std::chrono::seconds(60)),
            "__Host-fencepost_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
  EXPECT_EQ(session_cookie(token, false, std::chrono::seconds(60)),
            "fencepost_session=abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
  EXPECT_EQ(expired_cookie(false), "fencepost_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
}

TEST(session_token, has_256_random_bits) {
  SeededRandom random(1);
  const auto first = make_session_token(random), second = make_session_token(random);
  EXPECT_EQ(first.reveal().size(), 64U);
  EXPECT_FALSE(first == second);
}

}  // namespace
}  // namespace fencepost::identity
