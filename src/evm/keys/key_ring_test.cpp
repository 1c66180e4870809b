#include "evm/keys/key_ring.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "evm/address.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "evm/keys/keystore_file.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::evm {
namespace {

constexpr ScryptCost kCheap{.n = 2, .r = 8, .p = 1};

PrivateKey key_of(std::uint8_t byte) {
  return PrivateKey::from_bytes(Bytes(32, byte)).value();
}

std::string address_of_key(std::uint8_t byte) {
  return address_text(key_of(byte).address());
}

class KeyRingTest : public testing::Test {
 protected:
  void write(std::uint8_t byte, std::string_view password) {
    const SystemClock clock;
    ASSERT_TRUE(write_keystore(dir_.path(), key_of(byte), Secret(password), clock, random_, kCheap));
  }

  test::TempDir dir_{"key-ring"};
  SeededRandom random_{1};
  Runtime runtime_{{.threads = 1}};
  KeyRing ring_{runtime_};
};

TEST_F(KeyRingTest, opens_every_key_file_of_a_directory) {
  write(1, "pw");
  write(2, "pw");
  std::ofstream(dir_ / ".hidden") << "not a key";
  const auto loaded = ring_.load_keystores(dir_.path(), Secret("pw"));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(*loaded, 2u);
  for (const std::uint8_t byte : {1, 2}) {
    auto* signer = ring_.find(address_of_key(byte));
    ASSERT_NE(signer, nullptr);
    EXPECT_EQ(signer->address(), address_of_key(byte));
  }
  EXPECT_EQ(ring_.find(address_of_key(3)), nullptr);
  EXPECT_EQ(ring_.find(checksum_address(address_of_key(1))), nullptr) << "stored form only";
  auto expected = std::vector{address_of_key(1), address_of_key(2)};
  std::ranges::sort(expected);
  EXPECT_EQ(ring_.addresses(), expected);
}

TEST_F(KeyRingTest, names_every_file_that_does_not_open_and_adds_none) {
  write(1, "pw");
  write(2, "another");
  std::ofstream(dir_ / "garbage") << "not a key";
  const auto loaded = ring_.load_keystores(dir_.path(), Secret("pw"));
  ASSERT_FALSE(loaded);
  const auto& message = loaded.error().message;
  EXPECT_NE(message.find("garbage: "), std::string::npos) << message;
  EXPECT_NE(message.find(address_of_key(2).substr(2) + ": the password does not open"), std::string::npos) << message;
  EXPECT_EQ(message.find(address_of_key(1).substr(2)), std::string::npos) << message;
  EXPECT_EQ(message.find("pw"), std::string::npos) << message;
  EXPECT_EQ(ring_.size(), 0u);
}

TEST_F(KeyRingTest, the_error_lists_a_bounded_number_of_files) {
  for (int i = 0; i < 30; ++i) std::ofstream(dir_ / ("bad" + std::to_string(i))) << "x";
  const auto loaded = ring_.load_keystores(dir_.path(), Secret("pw"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, "bad_keystore");
  EXPECT_TRUE(loaded.error().message.ends_with("; and 10 more")) << loaded.error().message;
}

TEST_F(KeyRingTest, refuses_a_second_key_of_an_address) {
  write(1, "pw");
  std::filesystem::copy_file(*std::filesystem::directory_iterator(dir_.path()), dir_ / "copy");
  const auto loaded = ring_.load_keystores(dir_.path(), Secret("pw"));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::kConflict);
  EXPECT_EQ(loaded.error().code, "duplicate_signer");

  std::filesystem::remove(dir_ / "copy");
  ASSERT_TRUE(ring_.load_keystores(dir_.path(), Secret("pw")));
  EXPECT_EQ(ring_.load_keystores(dir_.path(), Secret("pw")).error().code, "duplicate_signer");
  EXPECT_EQ(ring_.add(key_of(1)).error().code, "duplicate_signer");
  EXPECT_EQ(ring_.size(), 1u);
}

TEST_F(KeyRingTest, says_when_there_is_no_directory_or_nothing_in_it) {
  EXPECT_EQ(ring_.load_keystores(dir_ / "missing", Secret("pw")).error().code, "cannot_read_keystore");
  EXPECT_EQ(ring_.load_keystores(dir_.path(), Secret("pw")), 0u);
}

TEST_F(KeyRingTest, takes_dev_keys) {
  std::vector<Secret> keys;
  for (const auto& account : dev_accounts()) keys.emplace_back(account.private_key);
  ASSERT_TRUE(ring_.add_dev_keys(keys));
  ASSERT_EQ(ring_.size(), 10u);
  for (const auto& account : dev_accounts()) EXPECT_NE(ring_.find(account.address), nullptr) << account.address;
}

TEST_F(KeyRingTest, names_a_bad_dev_key_by_its_place_only) {
  const std::vector<Secret> keys{Secret(dev_accounts()[0].private_key), Secret("0xsecret")};
  const auto added = ring_.add_dev_keys(keys);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().message, "key 2: a private key must be 64 hex digits");
  EXPECT_EQ(ring_.size(), 0u);
  const std::vector<Secret> twice{Secret(dev_accounts()[0].private_key), Secret(dev_accounts()[0].private_key)};
  EXPECT_EQ(ring_.add_dev_keys(twice).error().code, "duplicate_signer");
  EXPECT_EQ(ring_.size(), 0u);
}

TEST(dev_accounts, have_the_addresses_of_their_keys) {
  ASSERT_EQ(dev_accounts().size(), 10u);
  for (const auto& account : dev_accounts()) {
    const auto key = PrivateKey::from_hex(Secret(account.private_key)).value();
    EXPECT_EQ(address_text(key.address()), account.address);
  }
  EXPECT_EQ(dev_accounts()[0].address, "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266");
}

}  // namespace
}  // namespace fencepost::evm
