#include "evm/address.hpp"

#include <gtest/gtest.h>

namespace fencepost::evm {
namespace {

// From EIP-55.
constexpr std::string_view kChecksummed[] = {
    "0x52908400098527886E0F7030069857D2E4169EE7", "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77", "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
};

std::string lowercase(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::tolower(c));
  return out;
}

std::string uppercase_digits(std::string_view text) {
  std::string out(text);
  for (auto& c : out) c = static_cast<char>(std::toupper(c));
  return "0x" + out.substr(2);
}

TEST(address, every_correct_form_is_stored_as_lowercase) {
  for (const auto address : kChecksummed) {
    EXPECT_EQ(parse_address(address), lowercase(address));
    EXPECT_EQ(parse_address(lowercase(address)), lowercase(address));
    EXPECT_EQ(parse_address(uppercase_digits(address)), lowercase(address));
  }
  EXPECT_EQ(parse_address("0x0000000000000000000000000000000000000000"), "0x0000000000000000000000000000000000000000");
}

TEST(address, writes_the_checksum) {
  for (const auto address : kChecksummed) EXPECT_EQ(checksum_address(lowercase(address)), address);
  EXPECT_THROW(checksum_address("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"), Exception);
}

TEST(address, refuses_a_wrong_checksum) {
  // One digit mistyped, one letter in the wrong case.
  for (const auto* text :
       {"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAee", "0x5AAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"}) {
    const auto parsed = parse_address(text);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(parsed.error().code, "bad_checksum");
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
  }
}

TEST(address, refuses_text_that_is_not_an_address) {
  for (const auto* text :
       {"", "0x", "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0X5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed0",
        "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeg", " 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "vitalik.eth"}) {
    SCOPED_TRACE(text);
    const auto parsed = parse_address(text);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().kind, ErrorKind::kInvalid);
    EXPECT_EQ(parsed.error().code, "bad_address");
  }
}

TEST(address, goes_to_bytes_and_back) {
  const std::string text = "0x52908400098527886e0f7030069857d2e4169ee7";
  EXPECT_EQ(address_text(address_bytes(text)), text);
  EXPECT_THROW(address_bytes("0x52908400098527886E0F7030069857D2E4169EE7"), Exception);
}

TEST(address, of_a_created_contract) {
  const auto creator = address_bytes("0x970e8128ab834e8eac17ab8e3812f010678cf791");
  EXPECT_EQ(address_text(contract_address(creator, 0)), "0x333c3310824b7c685133f2bedb2ca4b8b4df633d");
  EXPECT_EQ(address_text(contract_address(creator, 1)), "0x8bda78331c916a08481428e4b07c96d3e916d165");
  EXPECT_EQ(address_text(contract_address(creator, 2)), "0xc9ddedf451bc62ce88bf9292afb13df35b670699");
}

}  // namespace
}  // namespace fencepost::evm
