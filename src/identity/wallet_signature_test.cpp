#include "identity/wallet_signature.hpp"

#include <gtest/gtest.h>

#include "evm/keys/dev_accounts.hpp"

namespace fencepost::identity {
namespace {

// By ethers 6: new Wallet(key of the first development account).signMessage("hello").
const Bytes kSignature = from_hex0x(
                             "0xf16ea9a3478698f695fd1401bfe27e9e4a7e8e3da94aa72b021125e31fa899cc573c48ea3fe1d4ab61a9db1"
                             "0c19032026e3ed2dbccba5a1"
                             "78235ac27f94504311c")
                             .value();

TEST(wallet_signature, is_over_the_text_with_its_length_in_front) {
  EXPECT_EQ(to_hex(personal_message_hash("hello")), "50b2c43fd39106bafbba0da34fc430e1f91e3c96ea2acee2bc34119f92b37750");
}

TEST(wallet_signature, belongs_to_one_address_and_one_text) {
  const auto hash = personal_message_hash("hello");
  const auto address = evm::dev_accounts()[0].address;
  EXPECT_TRUE(signed_by_key(hash, kSignature, address));
  EXPECT_FALSE(signed_by_key(hash, kSignature, evm::dev_accounts()[1].address));
  EXPECT_FALSE(signed_by_key(personal_message_hash("hello "), kSignature, address));
  auto by_parity = kSignature;
  by_parity[64] = 1;
  EXPECT_TRUE(signed_by_key(hash, by_parity, address)) << "some wallets write 0 and 1";
  for (const std::uint8_t v : {0, 2, 26, 27, 29, 255}) {
    auto wrong = kSignature;
    wrong[64] = v;
    EXPECT_FALSE(signed_by_key(hash, wrong, address)) << int{v};
  }
  for (const std::size_t size : {0, 64, 66}) {
    auto wrong = kSignature;
    wrong.resize(size);
    EXPECT_FALSE(signed_by_key(hash, wrong, address)) << size;
  }
}

}  // namespace
}  // namespace fencepost::identity
