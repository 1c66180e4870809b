#include "evm/keys/private_key.hpp"

#include <concepts>
#include <ostream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "evm/address.hpp"
#include "evm/keccak.hpp"
#include "evm/keys/ecdsa.hpp"

namespace fencepost::evm {
namespace {

template <class T>
concept Streamable = requires(std::ostream& out, const T& value) { out << value; };

static_assert(!std::copyable<PrivateKey>);
static_assert(std::movable<PrivateKey>);
static_assert(!fmt::is_formattable<PrivateKey>::value);
static_assert(!Streamable<PrivateKey>);

TEST(private_key, has_the_address_of_published_examples) {
  // The first account of the well-known test mnemonic, and the key of EIP-155's example.
  const auto key =
      PrivateKey::from_hex(Secret("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")).value();
  EXPECT_EQ(address_text(key.address()), "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
  const Bytes bytes(32, 0x46);
  EXPECT_EQ(address_text(PrivateKey::from_bytes(bytes).value().address()),
            "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
}

TEST(private_key, refuses_invalid_keys_without_showing_them) {
  for (const auto* text : {
           "",
           "0x",
           "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff8",
           "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff800",
           "zz0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
           "0000000000000000000000000000000000000000000000000000000000000000",
           "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",  // the order of the group
           "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
       }) {
    const auto key = PrivateKey::from_hex(Secret(text));
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().code, "bad_private_key");
    EXPECT_EQ(key.error().to_string().find("zz"), std::string::npos);
    EXPECT_EQ(key.error().to_string().find("ac09"), std::string::npos);
  }
  EXPECT_FALSE(PrivateKey::from_bytes(Bytes(31, 1)));
  EXPECT_FALSE(PrivateKey::from_bytes({}));
}

TEST(private_key, signs_so_that_its_address_is_recovered) {
  SeededRandom random(4);
  for (int i = 0; i < 200; ++i) {
    const auto key = PrivateKey::generate(random);
    Hash32 hash;
    random.fill(std::as_writable_bytes(std::span(hash)));
    const auto signature = key.sign(hash);
    EXPECT_EQ(recover_address(hash, signature), key.address());
    EXPECT_EQ(key.sign(hash), signature);
  }
}

TEST(private_key, signs_the_known_vector_of_rfc_6979) {
  // Published with Bitcoin's implementations: key 1, SHA-256 of the text.
  const auto key =
      PrivateKey::from_hex(Secret("0000000000000000000000000000000000000000000000000000000000000001")).value();
  Hash32 hash = from_hex0x_fixed<32>("0xa0dc65ffca799873cbea0ac274015b9526505daaaed385155425f7337704883e").value();
  const auto signature = key.sign(hash);  // of "Satoshi Nakamoto"
  EXPECT_EQ(to_hex(signature.r), "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8");
  EXPECT_EQ(to_hex(signature.s), "2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5");
}

// First returns zeros, which are not a valid key, then other bytes.
class ZerosFirst final : public Random {
 public:
  explicit ZerosFirst(int zeros) : zeros_(zeros) {}
  void fill(std::span<std::byte> out) override { std::ranges::fill(out, zeros_-- > 0 ? std::byte{0} : std::byte{7}); }

 private:
  int zeros_;
};

TEST(private_key, generates_only_valid_keys) {
  ZerosFirst sometimes(2);
  EXPECT_EQ(PrivateKey::generate(sometimes).reveal()[0], 7);
  ZerosFirst broken(1'000);
  EXPECT_THROW(PrivateKey::generate(broken), Exception);
}

}  // namespace
}  // namespace fencepost::evm
