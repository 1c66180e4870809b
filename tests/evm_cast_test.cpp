// Keys, signatures, encodings and key files, compared with Foundry's cast: another implementation, in another language.
#include <algorithm>
#include <future>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "evm/abi/abi.hpp"
#include "evm/address.hpp"
#include "evm/keys/dev_accounts.hpp"
#include "evm/keys/key_ring.hpp"
#include "evm/keys/keystore_file.hpp"
#include "evm/keys/private_key.hpp"
#include "tests/support/anvil.hpp"
#include "tests/support/cast.hpp"
#include "tests/support/temp_dir.hpp"

namespace fencepost::evm {
namespace {

using test::cast;

constexpr std::size_t kTransactions = 1'000;
constexpr std::size_t kProcesses = 2;

struct Sample {
  PrivateKey key;
  Transaction transaction;
  SignedTransaction made;
};

class Samples {
 public:
  explicit Samples(std::uint64_t seed) : random_(seed) {}

  Sample next() {
    auto key = PrivateKey::generate(random_);
    auto transaction = next_transaction();
    auto made = sign_transaction(key, transaction);
    return {std::move(key), std::move(transaction), std::move(made)};
  }

 private:
  // All sizes are equally likely, so that every length of every field occurs, and zero.
  std::uint64_t up_to_bits(unsigned bits) {
    const auto width = random_.next() % (bits + 1);
    return width == 0 ? 0 : random_.next() >> (64 - width);
  }

  Uint256 wide(unsigned bits) {
    Hash32 bytes;
    random_.fill(std::as_writable_bytes(std::span(bytes)));
    const auto width = static_cast<unsigned>(random_.next() % (bits + 1));
    return width == 0 ? Uint256(0) : Uint256(from_big_endian(bytes) >> (256 - width));
  }

  std::uint64_t chain_id() {
    constexpr std::uint64_t kUsual[] = {1, 31'337, 11'155'111};
    if (random_.next() % 2 == 0) return kUsual[random_.next() % std::size(kUsual)];
    // Above the ids that cast knows by name: for some of those it changes the transaction's type.
    return 10'000'000'000 + up_to_bits(62);
  }

  Transaction next_transaction() {
    Transaction out;
    out.chain_id = chain_id();
    out.nonce = up_to_bits(63);
    out.gas = up_to_bits(63);
    out.value = wide(256);
    const bool creates = random_.next() % 5 == 0;
    constexpr std::size_t kLengths[] = {0, 1, 2, 4, 36, 55, 56, 68, 255, 256, 300};
    out.data.resize(kLengths[random_.next() % std::size(kLengths)]);
    random_.fill(std::as_writable_bytes(std::span(out.data)));
    if (creates && out.data.empty()) out.data.push_back(0);
    if (!creates) {
      out.to.emplace();
      random_.fill(std::as_writable_bytes(std::span(*out.to)));
    }
    const auto [tip, cap] = std::minmax({wide(127), wide(127)});
    if (random_.next() % 2 == 0) {
      out.fees = LegacyFees{cap};
    } else {
      out.fees = DynamicFees{.max_fee_per_gas = cap, .max_priority_fee_per_gas = tip};
    }
    return out;
  }

  SeededRandom random_;
};

std::vector<std::string> mktx_arguments(const Sample& sample) {
  const auto& [chain_id, nonce, gas, to, value, data, fees] = sample.transaction;
  std::vector<std::string> out{"mktx",
                               "--private-key",
                               to_hex0x(sample.key.reveal()),
                               "--chain",
                               std::to_string(chain_id),
                               "--nonce",
                               std::to_string(nonce),
                               "--gas-limit",
                               std::to_string(gas),
                               "--value",
                               to_decimal(value)};
  if (const auto* legacy = std::get_if<LegacyFees>(&fees)) {
    out.insert(out.end(), {"--legacy", "--gas-price", to_decimal(legacy->gas_price)});
  } else {
    const auto& dynamic = std::get<DynamicFees>(fees);
    out.insert(out.end(), {"--gas-price", to_decimal(dynamic.max_fee_per_gas), "--priority-gas-price",
                           to_decimal(dynamic.max_priority_fee_per_gas)});
  }
  out.emplace_back(to ? address_text(*to) : "--create");
  if (!data.empty()) out.push_back(to_hex0x(data));
  return out;
}

// Returns a description of each sample that cast signs with other bytes. Both sign by RFC 6979, so there should be
// none.
std::vector<std::string> differences(std::span<const Sample> samples) {
  std::vector<std::string> out;
  for (const auto& sample : samples) {
    const auto theirs = cast(mktx_arguments(sample));
    const auto ours = to_hex0x(sample.made.raw);
    if (theirs != ours) {
      out.push_back(fmt::format("{}\nours   {}\ntheirs {}", fmt::join(mktx_arguments(sample), " "), ours, theirs));
    }
  }
  return out;
}

TEST(evm_cast, signs_a_thousand_random_transactions_like_cast) {
  Samples source(20'240'601);
  std::vector<Sample> samples;
  samples.reserve(kTransactions);
  for (std::size_t i = 0; i < kTransactions; ++i) samples.push_back(source.next());

  std::vector<std::future<std::vector<std::string>>> parts;
  constexpr auto kPart = kTransactions / kProcesses;
  parts.reserve(kProcesses);
  for (std::size_t i = 0; i < kProcesses; ++i) {
    parts.push_back(std::async(std::launch::async, differences, std::span(samples).subspan(i * kPart, kPart)));
  }
  for (auto& part : parts) {
    for (const auto& difference : part.get()) ADD_FAILURE() << difference;
  }
}

TEST(evm_cast, decodes_transactions_like_cast) {
  Samples source(7);
  for (int i = 0; i < 50; ++i) {
    const auto sample = source.next();
    // Cast may print the document as a JSON string that contains JSON.
    const auto outer = boost::json::parse(cast({"decode-transaction", to_hex0x(sample.made.raw)}));
    const auto theirs = outer.is_string() ? boost::json::parse(outer.get_string()) : outer;
    const auto ours = decode_transaction(sample.made.raw).value();
    const auto& [chain_id, nonce, gas, to, value, data, fees] = ours.transaction;
    EXPECT_EQ(theirs.at("signer").as_string(), address_text(ours.sender));
    EXPECT_EQ(theirs.at("hash").as_string(), to_hex0x(ours.hash));
    EXPECT_EQ(theirs.at("chainId").as_string(), to_quantity(chain_id));
    EXPECT_EQ(theirs.at("nonce").as_string(), to_quantity(nonce));
    EXPECT_EQ(theirs.at("gas").as_string(), to_quantity(gas));
    EXPECT_EQ(theirs.at("value").as_string(), to_quantity(value));
    EXPECT_EQ(theirs.at("input").as_string(), to_hex0x(data));
    EXPECT_EQ(theirs.at("to"), to ? boost::json::value(address_text(*to)) : boost::json::value());
    if (const auto* legacy = std::get_if<LegacyFees>(&fees)) {
      EXPECT_EQ(theirs.at("gasPrice").as_string(), to_quantity(legacy->gas_price));
    } else {
      const auto& dynamic = std::get<DynamicFees>(fees);
      EXPECT_EQ(theirs.at("maxFeePerGas").as_string(), to_quantity(dynamic.max_fee_per_gas));
      EXPECT_EQ(theirs.at("maxPriorityFeePerGas").as_string(), to_quantity(dynamic.max_priority_fee_per_gas));
    }
  }
}

TEST(evm_cast, derives_the_same_addresses_as_cast) {
  SeededRandom random(8);
  for (int i = 0; i < 20; ++i) {
    const auto key = PrivateKey::generate(random);
    const auto address = address_text(key.address());
    EXPECT_EQ(cast({"wallet", "address", "--private-key", to_hex0x(key.reveal())}), checksum_address(address));
    const auto nonce = random.next() >> (1 + i * 3);
    EXPECT_EQ(cast({"compute-address", address, "--nonce", std::to_string(nonce)}),
              "Computed Address: " + checksum_address(address_text(contract_address(key.address(), nonce))));
  }
}

TEST(evm_cast, encodes_calls_like_cast) {
  const auto to = address_bytes("0x5b38da6a701c568545dcfcb03fcb875f56beddc4");
  EXPECT_EQ(cast({"calldata", "f(string,address,bytes,bool,uint256)", "größer", address_text(to), "0xabcdef", "true",
                  "123456789012345678901234567890"}),
            to_hex0x(AbiWriter(selector("f(string,address,bytes,bool,uint256)"))
                         .string("größer")
                         .address(to)
                         .bytes(Bytes{0xab, 0xcd, 0xef})
                         .boolean(true)
                         .uint256(Uint256("123456789012345678901234567890"))
                         .take()));
}

TEST(evm_cast, opens_key_files_written_by_cast) {
  const test::TempDir dir("cast-keys");
  const auto path = dir.path().string();
  const auto imported = dev_accounts()[3];
  cast({"wallet", "import", "imported", "--keystore-dir", path, "--unsafe-password", "öpen sesame", "--private-key",
        std::string(imported.private_key)});
  const auto said = cast({"wallet", "new", path, "--unsafe-password", "öpen sesame"});
  const auto at = said.find("0x");
  ASSERT_NE(at, std::string::npos) << said;
  const auto fresh = parse_address(said.substr(at, 42)).value();

  Runtime runtime({.threads = 1});
  KeyRing ring(runtime);
  const auto loaded = ring.load_keystores(dir.path(), Secret("öpen sesame"));
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(*loaded, 2u);
  EXPECT_NE(ring.find(imported.address), nullptr);
  EXPECT_NE(ring.find(fresh), nullptr);
  EXPECT_EQ(read_keystore(dir / "imported", Secret("wrong")).error().code, "wrong_password");
}

TEST(evm_cast, cast_opens_key_files_written_by_fencepost) {
  const test::TempDir dir("our-keys");
  const SystemClock clock;
  SeededRandom random(9);
  for (const KdfCost cost : {KdfCost(ScryptCost{}), KdfCost(Pbkdf2Cost{})}) {
    const auto key = PrivateKey::generate(random);
    const auto file = write_keystore(dir.path(), key, Secret("öpen sesame"), clock, random, cost);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ(cast({"wallet", "address", "--keystore", file->string(), "--password", "öpen sesame"}),
              checksum_address(address_text(key.address())));
  }
}

TEST(evm_cast, anvil_funds_the_dev_accounts) {
  const test::Anvil anvil;
  const auto theirs = boost::json::parse(cast({"rpc", "--rpc-url", anvil.url(), "eth_accounts"}));
  ASSERT_EQ(theirs.as_array().size(), dev_accounts().size());
  for (std::size_t i = 0; i < dev_accounts().size(); ++i) {
    EXPECT_EQ(parse_address(std::string(theirs.at(i).as_string())).value(), dev_accounts()[i].address);
  }
}

}  // namespace
}  // namespace fencepost::evm
