#include "identity/session_token.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

const std::string kToken(64, 'a');

std::optional<Digest256> presented(std::vector<std::string> headers, bool tls = false) {
  http::Request request;
  for (const auto& header : headers) request.add_header("Cookie", header);
  return presented_session(request, tls);
}

TEST(session_token, is_found_among_the_cookies_of_the_host) {
  EXPECT_EQ(presented({"fencepost_session=" + kToken}), sha256(kToken));
  EXPECT_EQ(presented({"a=1; fencepost_session=" + kToken + "; b=2"}), sha256(kToken));
  EXPECT_EQ(presented({"a=1", "fencepost_session=" + kToken}), sha256(kToken));
  EXPECT_EQ(presented({"fencepost_session=" + kToken + "; fencepost_session=" + std::string(64, 'b')}), sha256(kToken));
  const std::vector<std::string> others{"",
                                        "fencepost_session",
                                        "fencepost_session=",
                                        ";;;=",
                                        "xfencepost_session=" + kToken,
                                        "a=fencepost_session=" + kToken,
                                        "fencepost_sessions=" + kToken,
                                        "fencepost_session=A" + kToken.substr(1),
                                        "fencepost_session=a" + kToken};
  for (const auto& other : others) {
    EXPECT_FALSE(presented({other})) << other;
  }
}

// A cookie that a page without TLS could have set does not count behind TLS.
TEST(session_token, has_a_name_of_its_own_behind_tls) {
  EXPECT_FALSE(presented({"fencepost_session=" + kToken}, true));
  EXPECT_EQ(presented({"__Host-fencepost_session=" + kToken}, true), sha256(kToken));
  const Secret token(kToken);
  EXPECT_EQ(session_cookie(token, true, std::chrono::seconds(60)),
            "__Host-fencepost_session=" + kToken + "; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure");
  EXPECT_EQ(session_cookie(token, false, std::chrono::seconds(60)),
            "fencepost_session=" + kToken + "; Path=/; Max-Age=60; HttpOnly; SameSite=Lax");
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
