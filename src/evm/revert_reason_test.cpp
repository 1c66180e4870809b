#include "evm/revert_reason.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/text.hpp"
#include "evm/abi/abi.hpp"

namespace fencepost::evm {
namespace {

Bytes hex(std::string_view text) {
  return from_hex(text).value();
}

std::string reason_of_error(std::string_view text) {
  return revert_reason(AbiWriter(selector("Error(string)")).string(text).take());
}

std::string reason_of_panic(unsigned code) {
  return revert_reason(AbiWriter(selector("Panic(uint256)")).uint256(code).take());
}

TEST(revert_reason, is_the_text_of_an_error) {
  EXPECT_EQ(reason_of_error("Ownable: caller is not the owner"), "Ownable: caller is not the owner");
  // As a node sends it, from Solidity's documentation.
  EXPECT_EQ(revert_reason(hex("08c379a0"
                              "0000000000000000000000000000000000000000000000000000000000000020"
                              "000000000000000000000000000000000000000000000000000000000000001a"
                              "4e6f7420656e6f7567682045746865722070726f76696465642e000000000000")),
            "Not enough Ether provided.");
  EXPECT_EQ(reason_of_error("größer ✓"), "größer ✓");
}

TEST(revert_reason, names_the_panics) {
  EXPECT_EQ(reason_of_panic(0x01), "panic 0x1: assertion failed");
  EXPECT_EQ(reason_of_panic(0x11), "panic 0x11: arithmetic overflow or underflow");
  EXPECT_EQ(reason_of_panic(0x12), "panic 0x12: division or modulo by zero");
  EXPECT_EQ(reason_of_panic(0x32), "panic 0x32: array index out of bounds");
  EXPECT_EQ(reason_of_panic(0x99), "panic 0x99: unknown code");
}

TEST(revert_reason, shows_a_custom_error_by_its_selector) {
  EXPECT_EQ(revert_reason(hex("82b42900")), "custom error 0x82b42900");
  EXPECT_EQ(revert_reason(AbiWriter(selector("TooLate(uint256)")).uint256(7).take()),
            "custom error " + to_hex0x(selector("TooLate(uint256)")) +
                " (0x0000000000000000000000000000000000000000000000000000000000000007)");
}

TEST(revert_reason, says_when_there_is_none) {
  EXPECT_EQ(revert_reason({}), "reverted without a reason");
  EXPECT_EQ(reason_of_error(""), "reverted without a reason");
  EXPECT_EQ(revert_reason(hex("08c3")), "reverted with 0x08c3");
}

TEST(revert_reason, shows_a_malformed_error_as_a_custom_error) {
  EXPECT_EQ(revert_reason(hex("08c379a0")), "custom error 0x08c379a0");
  EXPECT_EQ(revert_reason(hex("08c379a0ffff")), "custom error 0x08c379a0 (0xffff)");
  EXPECT_EQ(revert_reason(hex("4e487b71aa")), "custom error 0x4e487b71 (0xaa)");
}

TEST(revert_reason, hostile_text_becomes_one_line_of_valid_utf8) {
  EXPECT_EQ(reason_of_error(std::string_view("a\0b\n\x1b[31mc\x7f", 11)), "a b  [31mc ");
  EXPECT_EQ(reason_of_error("a\xc2\x9b"
                            "b"),
            "a b");
  EXPECT_EQ(reason_of_error("a\xff"
                            "b"),
            "a\xef\xbf\xbd"
            "b");
}

TEST(revert_reason, is_bounded) {
  const auto text = reason_of_error(std::string(5'000, 'x'));
  EXPECT_EQ(text.size(), kMaxRevertReason);
  EXPECT_TRUE(text.ends_with("x…"));
  EXPECT_EQ(reason_of_error(std::string(kMaxRevertReason, 'x')), std::string(kMaxRevertReason, 'x'));
  EXPECT_LE(reason_of_error(std::string(5'000, '\xff')).size(), kMaxRevertReason);
  // The text is cut between characters at every alignment.
  for (const auto* before : {"", "a", "aa"}) {
    std::string wide = before;
    for (int i = 0; i < 1'000; ++i) wide += "✓";
    const auto shown = reason_of_error(wide);
    EXPECT_LE(shown.size(), kMaxRevertReason);
    EXPECT_GT(shown.size(), kMaxRevertReason - 8);
    EXPECT_EQ(repair_utf8(shown), shown);
  }
  EXPECT_EQ(revert_reason(Bytes(100'000, 0xab)).size(), kMaxRevertReason);
}

TEST(revert_reason, mutations_give_text_that_can_be_stored) {
  SeededRandom random(6);
  const auto original = AbiWriter(selector("Error(string)")).string("insufficient balance for transfer").take();
  for (int i = 0; i < 50'000; ++i) {
    auto data = original;
    for (auto flips = 1 + random.next() % 3; flips > 0; --flips) {
      const auto bit = random.next() % (data.size() * 8);
      data[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    }
    if (random.next() % 4 == 0) data.resize(random.next() % data.size());
    const auto text = revert_reason(data);
    ASSERT_FALSE(text.empty());
    ASSERT_LE(text.size(), kMaxRevertReason);
    ASSERT_EQ(repair_utf8(text), text);
    ASSERT_TRUE(std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }));
  }
}

}  // namespace
}  // namespace fencepost::evm
