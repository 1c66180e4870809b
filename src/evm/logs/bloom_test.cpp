#include "evm/logs/bloom.hpp"

#include <gtest/gtest.h>

#include "evm/address.hpp"
#include "evm/chain_connector.hpp"

namespace fencepost::evm {
namespace {

// The bloom of a block of anvil, in which one contract logged with one topic, of thirty-two bytes 0x11.
constexpr std::string_view kBloom =
    "0x"
    "0000000000000000000000000000000000000000000000000000200000000000"
    "0000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000200000000000000000000000000"
    "0000004000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000200000000"
    "0000000000000000000000000000000000000000000000000000000020000000"
    "0000004000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000";
const std::string kLogged = "0x5fbdb2315678afecb367f032d93f642f64180aa3";

BlockHeader header(std::string_view bloom) {
  BlockHeader made{.number = 1, .hash = "0x1"};
  made.logs_bloom = std::make_shared<const Bloom>(from_hex0x_fixed<256>(bloom).value());
  return made;
}

std::vector<std::string> others(int count) {
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    Address address{};
    address[18] = static_cast<std::uint8_t>(i >> 8);
    address[19] = static_cast<std::uint8_t>(i);
    addresses.push_back(address_text(address));
  }
  return addresses;
}

TEST(bloom, a_contract_that_logged_is_found_among_others) {
  const auto block = header(kBloom);
  EXPECT_TRUE(may_log(block, std::vector{kLogged}));
  const std::vector bits{bloom_bits(address_bytes(kLogged))};
  EXPECT_TRUE(may_log(block, bits));
  auto many = others(1'000);
  EXPECT_FALSE(may_log(block, many)) << "none of these has its three bits among the six";
  many.push_back(kLogged);
  EXPECT_TRUE(may_log(block, many));
}

TEST(bloom, a_filter_needs_a_contract_and_a_topic) {
  const auto block = header(kBloom);
  const auto topic = [](char digit) { return "0x" + std::string(64, digit); };
  EXPECT_TRUE(may_log(block, LogFilter{{kLogged}, {}}));
  EXPECT_TRUE(may_log(block, LogFilter{{kLogged}, {topic('2'), topic('1')}}));
  EXPECT_FALSE(may_log(block, LogFilter{{kLogged}, {topic('2')}}));
  EXPECT_FALSE(may_log(block, LogFilter{others(1), {topic('1')}}));
  EXPECT_TRUE(may_log(BlockHeader{}, LogFilter{others(1), {topic('2')}})) << "no bloom";
}

TEST(bloom, every_single_bit_of_a_contract_is_needed) {
  for (const auto bit : bloom_bits(address_bytes(kLogged))) {
    auto bloom = from_hex0x_fixed<256>(kBloom).value();
    auto& byte = bloom[255 - bit / 8];
    const auto mask = static_cast<std::uint8_t>(1U << bit % 8);
    ASSERT_NE(byte & mask, 0) << "a bit of the contract is set in the real bloom";
    byte = static_cast<std::uint8_t>(byte & ~mask);
    EXPECT_FALSE(may_log(header(to_hex0x(bloom)), std::vector{kLogged}));
  }
}

TEST(bloom, a_block_without_a_bloom_may_have_any_log) {
  EXPECT_TRUE(may_log(BlockHeader{}, std::vector{kLogged}));
  EXPECT_TRUE(may_log(BlockHeader{}, std::vector<BloomBits>{}));
  EXPECT_FALSE(may_log(header(kBloom), std::vector<BloomBits>{}));
  EXPECT_FALSE(may_log(header("0x" + std::string(512, '0')), std::vector{kLogged}));
}

TEST(bloom, headers_are_equal_with_and_without_it) {
  auto bare = header(kBloom);
  bare.logs_bloom.reset();
  EXPECT_EQ(bare, header(kBloom));
  bare.timestamp = 7;
  EXPECT_NE(bare, header(kBloom));
}

TEST(bloom, polygons_blooms_do_not_cover_all_logs) {
  EXPECT_FALSE(bloom_covers_all_logs(137));
  EXPECT_FALSE(bloom_covers_all_logs(80002));
  EXPECT_TRUE(bloom_covers_all_logs(1));
}

}  // namespace
}  // namespace fencepost::evm
