#include "notify/model/verification_code.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

const Secret kKey("key of this installation");

TEST(verification_code, has_six_digits_and_follows_from_its_salt) {
  SeededRandom random(1);
  std::set<std::string> codes;
  for (int i = 0; i < 1000; ++i) {
    const auto salt = make_code_salt(random);
    const auto code = code_of(kKey, salt);
    ASSERT_EQ(code.size(), 6U) << code;
    ASSERT_TRUE(std::ranges::all_of(code, [](char c) { return c >= '0' && c <= '9'; })) << code;
    EXPECT_EQ(code, code_of(kKey, salt));
    codes.insert(code);
  }
  EXPECT_GT(codes.size(), 990U) << "they hardly repeat";
}

TEST(verification_code, keeps_leading_zeros) {
  SeededRandom random(2);
  bool zero = false;
  for (int i = 0; i < 200 && !zero; ++i) zero = code_of(kKey, make_code_salt(random)).starts_with('0');
  EXPECT_TRUE(zero);
}

TEST(verification_code, depends_on_the_installation) {
  SeededRandom random(3);
  const auto salt = make_code_salt(random);
  EXPECT_NE(code_of(kKey, salt), code_of(Secret("another"), salt));
}

TEST(verification_code, hash_differs_by_person_and_installation) {
  EXPECT_EQ(code_hash(kKey, 1, "123456"), code_hash(kKey, 1, "123456"));
  EXPECT_NE(code_hash(kKey, 1, "123456"), code_hash(kKey, 2, "123456"));
  EXPECT_NE(code_hash(kKey, 1, "123456"), code_hash(kKey, 1, "123457"));
  EXPECT_NE(code_hash(kKey, 1, "123456"), code_hash(Secret("another"), 1, "123456"));
}

}  // namespace
}  // namespace fencepost::notify
