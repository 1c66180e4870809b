#include "evm/transaction.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "evm/address.hpp"
#include "evm/keccak.hpp"
#include "evm/keys/private_key.hpp"
#include "evm/rlp.hpp"

namespace fencepost::evm {
namespace {

Bytes hex(std::string_view text) {
  return from_hex(text).value();
}

// The example of EIP-155.
constexpr std::string_view kEip155Key = "4646464646464646464646464646464646464646464646464646464646464646";
constexpr std::string_view kEip155Raw =
    "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe53"
    "7567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83";

Transaction eip155_example() {
  return {.chain_id = 1,
          .nonce = 9,
          .gas = 21'000,
          .to = address_bytes("0x3535353535353535353535353535353535353535"),
          .value = Uint256("1000000000000000000"),
          .data = {},
          .fees = LegacyFees{Uint256("20000000000")}};
}

// 0xce4dc6d7a7549a98ee3b071b67e970879ff51b5b95d1c340bacd80fa1e1aab31 of Ethereum's main network.
constexpr std::string_view kMainnetRaw =
    "02f86f0102843b9aca0085029e7822d68298f094d9e1459a7a482635700cbc20bbaf52d495ab9c9680841b55ba3ac080a0c199674fcb29f353"
    "693dd779c017823b954b3c69dffa3cd6b2a6ff7888798039a028ca912de909e7e6cdef9cdcaf24c54dd8c1032946dfa1d85c206b32a9064fe"
    "8";

PrivateKey key_of(std::string_view digits) {
  return PrivateKey::from_hex(Secret(digits)).value();
}

TEST(transaction, signs_the_example_of_eip_155) {
  const auto transaction = eip155_example();
  EXPECT_EQ(to_hex(signing_hash(transaction)), "daf5a779ae972f972197303d7b574746c7ef83eadac0f2791ad23db92e4c8e53");
  const auto made = sign_transaction(key_of(kEip155Key), transaction);
  EXPECT_EQ(to_hex(made.raw), kEip155Raw);
  EXPECT_EQ(to_hex(made.hash), "33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788");
}

TEST(transaction, decodes_the_example_of_eip_155) {
  const auto decoded = decode_transaction(hex(kEip155Raw));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(decoded->transaction, eip155_example());
  EXPECT_EQ(address_text(decoded->sender), "0x9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f");
  EXPECT_EQ(to_hex(decoded->hash), "33469b22e9f636356c4160a87eb19df52b7412e8eac32a4a55ffe88ea8350788");
  EXPECT_EQ(to_hex(assemble(decoded->transaction, decoded->signature).raw), kEip155Raw);
}

TEST(transaction, decodes_one_of_the_main_network) {
  const auto decoded = decode_transaction(hex(kMainnetRaw));
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  const Transaction expected{.chain_id = 1,
                             .nonce = 2,
                             .gas = 39'152,
                             .to = address_bytes("0xd9e1459a7a482635700cbc20bbaf52d495ab9c96"),
                             .value = 0,
                             .data = hex("1b55ba3a"),
                             .fees = DynamicFees{.max_fee_per_gas = Uint256("11248607958"),
                                                 .max_priority_fee_per_gas = Uint256("1000000000")}};
  EXPECT_EQ(decoded->transaction, expected);
  EXPECT_EQ(address_text(decoded->sender), "0x001e2b7de757ba469a57bf6b23d982458a07efce");
  EXPECT_EQ(to_hex(decoded->hash), "ce4dc6d7a7549a98ee3b071b67e970879ff51b5b95d1c340bacd80fa1e1aab31");
  EXPECT_EQ(to_hex(assemble(decoded->transaction, decoded->signature).raw), kMainnetRaw);
}

Transaction random_transaction(Random& random) {
  const auto wide = [&] {
    std::array<std::uint8_t, 32> bytes;
    random.fill(std::as_writable_bytes(std::span(bytes)));
    return Uint256(from_big_endian(bytes) >> static_cast<unsigned>(random.next() % 256));
  };
  Transaction out;
  out.chain_id = 1 + (random.next() >> (1 + random.next() % 63));
  out.nonce = random.next() >> (1 + random.next() % 63);
  out.gas = random.next() >> (random.next() % 64);
  if (random.next() % 4 != 0) {
    out.to.emplace();
    random.fill(std::as_writable_bytes(std::span(*out.to)));
  }
  out.value = wide();
  out.data.resize(random.next() % 300);
  random.fill(std::as_writable_bytes(std::span(out.data)));
  if (random.next() % 2 == 0) {
    out.fees = LegacyFees{wide()};
  } else {
    const auto [tip, cap] = std::minmax({wide(), wide()});
    out.fees = DynamicFees{.max_fee_per_gas = cap, .max_priority_fee_per_gas = tip};
  }
  return out;
}

TEST(transaction, decodes_what_it_signs) {
  SeededRandom random(1);
  for (int i = 0; i < 500; ++i) {
    const auto transaction = random_transaction(random);
    const auto key = PrivateKey::generate(random);
    const auto made = sign_transaction(key, transaction);
    EXPECT_EQ(made.hash, keccak256(made.raw));
    const auto decoded = decode_transaction(made.raw);
    ASSERT_TRUE(decoded) << decoded.error().to_string() << " " << to_hex(made.raw);
    EXPECT_EQ(decoded->transaction, transaction);
    EXPECT_EQ(decoded->sender, key.address());
    EXPECT_EQ(decoded->hash, made.hash);
  }
}

TEST(transaction, keeps_the_largest_values) {
  Transaction transaction = eip155_example();
  transaction.chain_id = std::numeric_limits<std::uint64_t>::max();
  transaction.nonce = std::numeric_limits<std::uint64_t>::max() - 1;
  transaction.gas = std::numeric_limits<std::uint64_t>::max();
  transaction.value = std::numeric_limits<Uint256>::max();
  transaction.fees = LegacyFees{std::numeric_limits<Uint256>::max()};
  const auto decoded = decode_transaction(sign_transaction(key_of(kEip155Key), transaction).raw);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(decoded->transaction, transaction);
}

// The order of the group; S over half of it has a twin that also recovers.
const Uint256 kOrder("0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");

Error refused(std::span<const std::uint8_t> raw) {
  const auto decoded = decode_transaction(raw);
  EXPECT_FALSE(decoded) << to_hex(raw);
  return decoded ? Error{} : decoded.error();
}

TEST(transaction, refuses_the_twin_with_high_s) {
  const auto good = decode_transaction(hex(kEip155Raw)).value();
  auto twin = good.signature;
  twin.s = to_big_endian(Uint256(kOrder - from_big_endian(twin.s)));
  twin.y_parity = !twin.y_parity;
  const auto error = refused(assemble(good.transaction, twin).raw);
  EXPECT_EQ(error.code, "bad_signature");
  EXPECT_EQ(error.message, "s must be in the lower half (EIP-2)");
}

TEST(transaction, refuses_invalid_signatures) {
  const auto good = decode_transaction(hex(kMainnetRaw)).value();
  const auto refused_with = [&](const Uint256& r, const Uint256& s) {
    return refused(assemble(good.transaction, {to_big_endian(r), to_big_endian(s), false}).raw).code;
  };
  const auto r = from_big_endian(good.signature.r);
  EXPECT_EQ(refused_with(0, 1), "bad_signature");
  EXPECT_EQ(refused_with(1, 0), "bad_signature");
  EXPECT_EQ(refused_with(kOrder, 1), "bad_signature");
  EXPECT_EQ(refused_with(r, kOrder), "bad_signature");
  EXPECT_EQ(refused_with(5, 1), "bad_signature");  // no point of the curve has x = 5
}

// A legacy transaction of these fields, each already encoded.
Bytes legacy_of(std::initializer_list<std::string_view> fields) {
  Bytes payload;
  for (const auto field : fields) {
    const auto bytes = hex(field);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  return rlp::list(payload);
}

TEST(transaction, says_what_is_wrong) {
  constexpr std::string_view kTo = "943535353535353535353535353535353535353535";
  const auto cut = hex(kEip155Raw.substr(0, kEip155Raw.size() - 2));
  auto longer = hex(kEip155Raw);
  longer.push_back(0);
  struct Case {
    Bytes raw;
    std::string_view code;
    std::string_view message;
  };
  const Case cases[] = {
      {{}, "bad_transaction", "the transaction is empty"},
      {cut, "bad_rlp", "an item of 108 bytes is cut off after 107"},
      {longer, "bad_rlp", "expected the end, got 1 more bytes"},
      {hex("01c0"), "unsupported_transaction", "transactions of type 1 are not supported"},
      {hex("03c0"), "unsupported_transaction", "transactions of type 3 are not supported"},
      {hex("7f"), "unsupported_transaction", "transactions of type 127 are not supported"},
      {hex("80"), "bad_transaction", "expected a list or a type, got a byte string"},
      {hex("02"), "bad_rlp", "an item is missing"},
      {hex("0280"), "bad_transaction", "expected a list of fields"},
      {hex("c0"), "bad_transaction", "nonce: an item is missing"},
      {hex("02c0"), "bad_transaction", "chain id: an item is missing"},
      {legacy_of({"00", "01", "01", kTo, "80", "80", "25", "01", "01"}), "bad_transaction",
       "nonce: a number has a leading zero"},
      {legacy_of({"c0", "01", "01", kTo, "80", "80", "25", "01", "01"}), "bad_transaction",
       "nonce: expected a byte string, got a list"},
      {legacy_of({"89010000000000000000", "01", "01", kTo, "80", "80", "25", "01", "01"}), "bad_transaction",
       "nonce: a number has 9 bytes; expected at most 8"},
      {legacy_of({"88ffffffffffffffff", "01", "01", kTo, "80", "80", "25", "01", "01"}), "bad_transaction",
       "nonce: must be under 2^64 - 1 (EIP-2681)"},
      {legacy_of({"01", "01", "01", "823535", "80", "80", "25", "01", "01"}), "bad_transaction",
       "to: expected 20 bytes or none, got 2"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "1b", "01", "01"}), "unsupported_transaction",
       "a legacy transaction without a chain id (EIP-155) could be replayed on any chain"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "22", "01", "01"}), "bad_transaction",
       "v: expected 35 + 2 × chain id + parity, got 34"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "23", "01", "01"}), "bad_transaction", "chain id: must not be 0"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "8a01000000000000000000", "01", "01"}), "bad_transaction",
       "v: the chain id is over 64 bits"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "25", "01"}), "bad_transaction", "s: an item is missing"},
      {legacy_of({"01", "01", "01", kTo, "80", "80", "25", "01", "01", "01"}), "bad_transaction",
       "the transaction has more fields than its type allows"},
      {hex("02ca01010101018080800101"), "bad_transaction", "access list: expected a list, got a byte string"},
      {hex("02cc0101020101808080c0010101"), "bad_transaction",
       "max priority fee per gas: must not be higher than max fee per gas"},
      {hex("02cc0101010101808080c0020101"), "bad_transaction", "y parity: expected 0 or 1, got 2"},
      {hex("02cd0101010101808080c1c0010101"), "unsupported_transaction",
       "transactions with an access list are not supported"},
  };
  for (const auto& [raw, code, message] : cases) {
    SCOPED_TRACE(to_hex(raw));
    const auto error = refused(raw);
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.message, message);
  }
}

TEST(transaction, a_flipped_bit_is_refused_or_another_transaction) {
  for (const auto text : {kEip155Raw, kMainnetRaw}) {
    const auto raw = hex(text);
    const auto original = decode_transaction(raw).value();
    for (std::size_t bit = 0; bit < raw.size() * 8; ++bit) {
      auto bent = raw;
      bent[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      const auto decoded = decode_transaction(bent);
      if (!decoded) continue;
      EXPECT_EQ(assemble(decoded->transaction, decoded->signature).raw, bent);
      EXPECT_NE(decoded->sender, original.sender) << bit;
    }
  }
}

TEST(transaction, a_mutation_that_decodes_encodes_to_the_same_bytes) {
  SeededRandom random(2);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    auto raw = hex(i % 2 == 0 ? kEip155Raw : kMainnetRaw);
    const auto changes = 1 + random.next() % 4;
    for (std::uint64_t change = 0; change < changes && !raw.empty(); ++change) {
      const auto at = static_cast<std::ptrdiff_t>(random.next() % raw.size());
      const auto byte = static_cast<std::uint8_t>(random.next());
      const auto kind = random.next() % 4;
      if (kind == 0) raw.erase(raw.begin() + at);
      if (kind == 1) raw.insert(raw.begin() + at, byte);
      if (kind >= 2) raw[static_cast<std::size_t>(at)] = byte;
    }
    const auto decoded = decode_transaction(raw);
    if (!decoded) continue;
    ++accepted;
    ASSERT_EQ(assemble(decoded->transaction, decoded->signature).raw, raw);
  }
  EXPECT_GT(accepted, 100);
}

TEST(transaction, intrinsic_gas) {
  EXPECT_EQ(intrinsic_gas(false, {}), 21'000u);
  EXPECT_EQ(intrinsic_gas(true, {}), 53'000u);
  // The floor of EIP-7623 applies to plain data: 10 for a zero byte, 40 for any other.
  EXPECT_EQ(intrinsic_gas(false, hex("00")), 21'010u);
  EXPECT_EQ(intrinsic_gas(false, hex("01")), 21'040u);
  EXPECT_EQ(intrinsic_gas(false, hex("00000102")), 21'000u + 20 + 80);
  // A creation with little data costs more than the floor: 4 or 16 per byte, and 2 for each started word.
  EXPECT_EQ(intrinsic_gas(true, hex("00")), 53'000u + 4 + 2);
  EXPECT_EQ(intrinsic_gas(true, Bytes(33, 0x01)), 53'000u + 33 * 16 + 4);
  // For a creation with much data the floor applies.
  EXPECT_EQ(intrinsic_gas(true, Bytes(10'000, 0x01)), 21'000u + 10'000 * 40);
}

}  // namespace
}  // namespace fencepost::evm
