#include "notify/model/unsubscribe_token.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

const Secret kKey("key of this installation");
const Unsubscribe kWhat{42, 31337, "0x5fbdb2315678afecb367f032d93f642f64180aa3"};

TEST(unsubscribe_token, names_an_address_and_a_contract) {
  const auto token = unsubscribe_token(kKey, kWhat);
  EXPECT_TRUE(std::ranges::all_of(token, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.';
  })) << token;
  EXPECT_EQ(read_unsubscribe_token(kKey, token), kWhat);
}

TEST(unsubscribe_token, is_refused_when_a_character_differs) {
  const auto token = unsubscribe_token(kKey, kWhat);
  for (std::size_t i = 0; i < token.size(); ++i) {
    auto changed = token;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_EQ(read_unsubscribe_token(kKey, changed), std::nullopt) << changed;
  }
}

TEST(unsubscribe_token, is_refused_in_other_forms) {
  for (const auto* text : {"", ".", "...", "1.2.0xabc", "1.2.3.4.5", "a.b.c.d"}) {
    EXPECT_EQ(read_unsubscribe_token(kKey, text), std::nullopt) << text;
  }
  EXPECT_EQ(read_unsubscribe_token(Secret("another"), unsubscribe_token(kKey, kWhat)), std::nullopt);
}

}  // namespace
}  // namespace fencepost::notify
