#include "identity/login_nonce.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

using namespace std::chrono_literals;

TEST(login_nonce, is_good_until_it_expires_and_only_here) {
  const Secret key("ours");
  SeededRandom random(1);
  const TimePoint now{1'700'000'000s};
  const auto nonce = make_login_nonce(key, random, now, 10min);
  EXPECT_EQ(nonce.text.size(), 80U);
  EXPECT_EQ(nonce.expires_at, now + 10min);
  EXPECT_EQ(check_login_nonce(key, nonce.text, now + 10min - 1us), nonce.expires_at);
  EXPECT_EQ(check_login_nonce(key, nonce.text, now + 10min).error().code, "login_expired");
  EXPECT_EQ(check_login_nonce(Secret("other"), nonce.text, now).error().code, "bad_login_nonce");
  EXPECT_NE(make_login_nonce(key, random, now, 10min).text, nonce.text);
}

TEST(login_nonce, no_digit_can_be_changed) {
  const Secret key("ours");
  SeededRandom random(1);
  const TimePoint now{1'700'000'000s};
  const auto text = make_login_nonce(key, random, now, 10min).text;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto changed = text;
    changed[i] = changed[i] == '0' ? '1' : '0';
    EXPECT_EQ(check_login_nonce(key, changed, now).error().code, "bad_login_nonce") << i;
  }
  for (const auto& other : {std::string(), text + "0", text.substr(1), std::string(80, 'x')}) {
    EXPECT_EQ(check_login_nonce(key, other, now).error().code, "bad_login_nonce") << other;
  }
}

}  // namespace
}  // namespace fencepost::identity
