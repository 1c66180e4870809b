#include "evm/abi/abi.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "evm/address.hpp"

namespace fencepost::evm {
namespace {

Bytes hex(std::string_view text) {
  return from_hex(text).value();
}

std::string word(std::string_view digits) {
  return std::string(64 - digits.size(), '0') + std::string(digits);
}

TEST(abi, selectors) {
  EXPECT_EQ(to_hex(selector("transfer(address,uint256)")), "a9059cbb");
  EXPECT_EQ(to_hex(selector("balanceOf(address)")), "70a08231");
  EXPECT_EQ(to_hex(selector("Error(string)")), "08c379a0");
  EXPECT_EQ(to_hex(selector("Panic(uint256)")), "4e487b71");
}

TEST(abi, writes_a_transfer) {
  const auto to = address_bytes("0x5b38da6a701c568545dcfcb03fcb875f56beddc4");
  EXPECT_EQ(to_hex(AbiWriter(selector("transfer(address,uint256)")).address(to).uint256(1000).take()),
            "a9059cbb" + word("5b38da6a701c568545dcfcb03fcb875f56beddc4") + word("3e8"));
}

// The example "sam" of the specification, without its array.
TEST(abi, writes_dynamic_values_behind_the_words) {
  const auto data = AbiWriter().string("dave").boolean(true).bytes(Bytes(33, 0xee)).take();
  EXPECT_EQ(to_hex(data), word("60") + word("1") + word("a0") + word("4") + "64617665" + std::string(56, '0') +
                              word("21") + to_hex(Bytes(33, 0xee)) + std::string(62, '0'));
}

TEST(abi, reads_what_it_writes) {
  const auto to = address_bytes("0x5b38da6a701c568545dcfcb03fcb875f56beddc4");
  Hash32 id;
  id.fill(0xab);
  const auto big = std::numeric_limits<Uint256>::max();
  const auto data =
      AbiWriter().string("hello").address(to).boolean(false).bytes({}).uint256(big).bytes32(id).bytes(id).take();
  const AbiReader in(data);
  EXPECT_EQ(in.string(0), "hello");
  EXPECT_EQ(in.address(1), to);
  EXPECT_EQ(in.boolean(2), false);
  EXPECT_TRUE(in.bytes(3).value().empty());
  EXPECT_EQ(in.uint256(4), big);
  EXPECT_EQ(in.bytes32(5), id);
  EXPECT_EQ(to_hex(in.bytes(6).value()), to_hex(id));
}

TEST(abi, refuses_offsets_and_lengths_past_the_end) {
  const std::string most(64, 'f');
  const struct {
    std::string data;
    std::string_view what;
  } cases[] = {
      {"", "no argument"},
      {std::string(62, '0'), "half a word"},
      {word("20"), "no length"},
      {word("21") + word("0"), "a length that is cut off"},
      {most + word("0"), "an offset over 64 bits"},
      {word("ffffffffffffffff") + word("0"), "an offset that would wrap"},
      {word("20") + most, "a length over 64 bits"},
      {word("20") + word("21") + std::string(64, 'a'), "a length one too long"},
      {word("20") + word("ffffffffffffffe0") + std::string(64, 'a'), "a length that would wrap"},
  };
  for (const auto& [text, what] : cases) {
    SCOPED_TRACE(what);
    const auto data = hex(text);
    const auto read = AbiReader(data).bytes(0);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, "bad_abi");
  }
  const auto one = hex(word("1"));
  EXPECT_FALSE(AbiReader(one).uint256(1));
  EXPECT_FALSE(AbiReader(one).uint256(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(AbiReader(one).bytes(std::numeric_limits<std::size_t>::max() / 32 + 1));
}

TEST(abi, refuses_nonzero_padding) {
  const auto two = hex(word("2"));
  EXPECT_FALSE(AbiReader(two).boolean(0));
  const auto long_address = hex("01" + std::string(62, '0'));
  EXPECT_FALSE(AbiReader(long_address).address(0));
}

TEST(abi, reads_a_value_without_its_padding) {
  const auto data = hex(word("20") + word("3") + "616263");
  EXPECT_EQ(AbiReader(data).string(0), "abc");
}

TEST(abi, random_offsets_and_lengths_stay_inside) {
  SeededRandom random(5);
  int read = 0;
  for (int i = 0; i < 50'000; ++i) {
    Bytes data(random.next() % 160);
    random.fill(std::as_writable_bytes(std::span(data)));
    // Small numbers in the first words, so that some of them are valid offsets.
    for (std::size_t at = 0; at + 32 <= data.size(); at += 32) {
      std::fill_n(data.begin() + static_cast<std::ptrdiff_t>(at), random.next() % 33, std::uint8_t{0});
      data[at + 31] &= 0x7f;
    }
    const AbiReader in(data);
    const auto value = in.bytes(random.next() % 4);
    if (!value) continue;
    ++read;
    ASSERT_LE(value->data() + value->size(), data.data() + data.size());
    ASSERT_GE(value->data(), data.data());
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace fencepost::evm
