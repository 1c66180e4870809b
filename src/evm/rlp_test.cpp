#include "evm/rlp.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace fencepost::evm::rlp {
namespace {

Bytes hex(std::string_view text) {
  return from_hex(text).value();
}

Bytes text_bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

std::string encoded(const Bytes& bytes) {
  Bytes out;
  append_bytes(out, bytes);
  return to_hex(out);
}

template <class T>
std::string encoded_integer(T value) {
  Bytes out;
  append_integer(out, value);
  return to_hex(out);
}

TEST(rlp, encodes_byte_strings) {
  EXPECT_EQ(encoded({}), "80");
  EXPECT_EQ(encoded({0x00}), "00");
  EXPECT_EQ(encoded({0x7f}), "7f");
  EXPECT_EQ(encoded({0x80}), "8180");
  EXPECT_EQ(encoded(text_bytes("dog")), "83646f67");
  EXPECT_EQ(encoded(Bytes(55, 0xaa)), "b7" + to_hex(Bytes(55, 0xaa)));
  EXPECT_EQ(encoded(text_bytes("Lorem ipsum dolor sit amet, consectetur adipisicing elit")),
            "b8384c6f72656d20697073756d20646f6c6f722073697420616d65742c20636f6e7365637465747572206164697069736963696e67"
            "20656c6974");
  EXPECT_EQ(encoded(Bytes(1024, 0x01)), "b90400" + to_hex(Bytes(1024, 0x01)));
}

TEST(rlp, encodes_numbers_without_leading_zeros) {
  EXPECT_EQ(encoded_integer(std::uint64_t{0}), "80");
  EXPECT_EQ(encoded_integer(std::uint64_t{15}), "0f");
  EXPECT_EQ(encoded_integer(std::uint64_t{1024}), "820400");
  EXPECT_EQ(encoded_integer(~std::uint64_t{0}), "88ffffffffffffffff");
  EXPECT_EQ(encoded_integer(Uint256(0)), "80");
  EXPECT_EQ(encoded_integer(Uint256(127)), "7f");
  EXPECT_EQ(encoded_integer(Uint256(1) << 255), "a0" + to_hex(to_big_endian(Uint256(1) << 255)));
}

TEST(rlp, encodes_lists) {
  EXPECT_EQ(to_hex(list({})), "c0");
  Bytes cat_dog;
  append_bytes(cat_dog, text_bytes("cat"));
  append_bytes(cat_dog, text_bytes("dog"));
  EXPECT_EQ(to_hex(list(cat_dog)), "c88363617483646f67");

  // The set-theoretical three of the specification: [ [], [[]], [ [], [[]] ] ]
  Bytes one;
  append_list(one, {});
  Bytes two = one;
  append_list(two, one);
  Bytes three = two;
  append_list(three, two);
  EXPECT_EQ(to_hex(list(three)), "c7c0c1c0c3c0c1c0");
  EXPECT_EQ(to_hex(list(Bytes(56, 0x01))), "f838" + to_hex(Bytes(56, 0x01)));
}

TEST(rlp, reads_what_it_writes) {
  Bytes payload;
  append_integer(payload, std::uint64_t{1'000'000});
  append_bytes(payload, text_bytes("hello"));
  append_list(payload, list({}));
  append_integer(payload, (Uint256(1) << 200) + 5);
  const auto whole = list(payload);
  ASSERT_TRUE(check(whole));

  Reader outer(whole);
  ASSERT_TRUE(outer.next_is_list());
  auto in = outer.list().value();
  EXPECT_TRUE(outer.at_end());
  EXPECT_EQ(in.uint64(), 1'000'000u);
  const auto hello = in.bytes().value();
  EXPECT_EQ(Bytes(hello.begin(), hello.end()), text_bytes("hello"));
  auto inner = in.list().value();
  EXPECT_TRUE(inner.list().value().at_end());
  EXPECT_EQ(in.uint256(), (Uint256(1) << 200) + 5);
  EXPECT_TRUE(in.end());
  EXPECT_FALSE(in.bytes());
}

TEST(rlp, refuses_what_is_not_canonical) {
  struct Case {
    std::string text;
    std::string_view message;
  };
  const Case cases[] = {
      {"", "an item is missing"},
      {"81", "an item of 1 bytes is cut off after 0"},
      {"83646f", "an item of 3 bytes is cut off after 2"},
      {"8100", "a byte under 0x80 must not have a prefix"},
      {"817f", "a byte under 0x80 must not have a prefix"},
      {"c2817f", "a byte under 0x80 must not have a prefix"},
      {"b8", "the length of an item is cut off"},
      {"b90400", "an item of 1024 bytes is cut off after 0"},
      {"b837" + to_hex(Bytes(55, 0xaa)), "a length of 55 must be in the prefix itself"},
      {"b90038" + to_hex(Bytes(56, 0xaa)), "the length of an item has a leading zero"},
      {"f800", "the length of an item has a leading zero"},
      {"f801c0", "a length of 1 must be in the prefix itself"},
      {"bfffffffffffffffff00", "an item of 18446744073709551615 bytes is cut off after 1"},
      {"ffffffffffffffffff00", "an item of 18446744073709551615 bytes is cut off after 1"},
      {"c3836461", "an item of 3 bytes is cut off after 2"},
      {"c0c0", "expected the end, got 1 more bytes"},
      {"0102", "expected the end, got 1 more bytes"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const auto checked = check(hex(text));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, "bad_rlp");
    EXPECT_EQ(checked.error().message, message);
  }
}

TEST(rlp, refuses_numbers_that_are_not_canonical_or_too_large) {
  const auto leading_zero = hex("820001");
  EXPECT_EQ(Reader(leading_zero).uint64().error().message, "a number has a leading zero");
  const auto zero_byte = hex("00");
  EXPECT_EQ(Reader(zero_byte).uint256().error().message, "a number has a leading zero");
  const auto nine = hex("89010000000000000000");
  EXPECT_EQ(Reader(nine).uint64().error().message, "a number has 9 bytes; expected at most 8");
  EXPECT_EQ(Reader(nine).uint256(), Uint256(1) << 64);
  const auto thirty_three = hex("a101" + std::string(64, '0'));
  EXPECT_EQ(Reader(thirty_three).uint256().error().message, "a number has 33 bytes; expected at most 32");
}

TEST(rlp, does_not_move_after_an_error) {
  const auto input = hex("c0820001");
  Reader reader(input);
  EXPECT_FALSE(reader.bytes());
  EXPECT_TRUE(reader.list());
  EXPECT_FALSE(reader.uint64());
  EXPECT_TRUE(reader.bytes());
  EXPECT_TRUE(reader.at_end());
}

TEST(rlp, bounds_the_depth) {
  Bytes nested = list({});
  for (std::size_t depth = 1; depth < kMaxDepth; ++depth) nested = list(nested);
  EXPECT_TRUE(check(nested));
  nested = list(nested);
  const auto checked = check(nested);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, "lists are nested too deep");
  // Deep enough to overflow the stack of a decoder without a bound.
  Bytes bottomless;
  for (int i = 0; i < 20'000; ++i) bottomless = list(bottomless);
  EXPECT_FALSE(check(bottomless));
}

// Accepted input is canonical: encoding the decoded value again gives the same bytes.
void append_again(Reader reader, Bytes& out) {
  while (!reader.at_end()) {
    if (reader.next_is_list()) {
      Bytes inner;
      append_again(reader.list().value(), inner);
      append_list(out, inner);
    } else {
      append_bytes(out, reader.bytes().value());
    }
  }
}

TEST(rlp, random_bytes_either_fail_or_are_canonical) {
  SeededRandom random(3);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    Bytes input(random.next() % 12);
    random.fill(std::as_writable_bytes(std::span(input)));
    if (!input.empty() && round % 2 == 0) input.front() = static_cast<std::uint8_t>(0xc0 + input.size() - 1);
    if (!check(input)) continue;
    ++accepted;
    Bytes again;
    append_again(Reader(input), again);
    ASSERT_EQ(again, input) << to_hex(input);
  }
  EXPECT_GT(accepted, 1'000);
}

}  // namespace
}  // namespace fencepost::evm::rlp
