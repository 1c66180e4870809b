// An EVM transaction: legacy with replay protection (EIP-155) or EIP-1559. Its signing hash, its signed bytes and its
// transaction hash.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/uint256.hpp"

namespace fencepost::evm {

using Address = std::array<std::uint8_t, 20>;
using Hash32 = std::array<std::uint8_t, 32>;

struct LegacyFees {
  Uint256 gas_price;
  friend bool operator==(const LegacyFees&, const LegacyFees&) = default;
};
struct DynamicFees {
  Uint256 max_fee_per_gas;
  Uint256 max_priority_fee_per_gas;
  friend bool operator==(const DynamicFees&, const DynamicFees&) = default;
};
using Fees = std::variant<LegacyFees, DynamicFees>;

struct Transaction {
  std::uint64_t chain_id = 0;
  std::uint64_t nonce = 0;
  std::uint64_t gas = 0;
  std::optional<Address> to;  // none: creates a contract
  Uint256 value;
  Bytes data;
  Fees fees;
  // An access list other than the empty one is not supported: neither built nor decoded (`unsupported_transaction`).

  friend bool operator==(const Transaction&, const Transaction&) = default;
};

struct Signature {
  Hash32 r{};
  Hash32 s{};
  bool y_parity = false;
  friend bool operator==(const Signature&, const Signature&) = default;
};

struct SignedTransaction {
  Bytes raw;
  Hash32 hash{};
};

struct DecodedTransaction {
  Transaction transaction;
  Signature signature;
  Address sender{};
  Hash32 hash{};
};

// Checks what every chain requires: a chain id other than 0, a nonce under 2^64 - 1 (EIP-2681), a priority fee no
// higher than the cap. Errors: kInvalid `bad_transaction`.
Result<void> check_transaction(const Transaction& transaction);

// The hash that the key signs.
Hash32 signing_hash(const Transaction& transaction);
SignedTransaction assemble(const Transaction& transaction, const Signature& signature);
// Decodes a signed transaction. Strict: requires canonical RLP without trailing bytes, low S, a recoverable sender, and
// passes check_transaction. Errors, kInvalid: `bad_rlp`, `bad_transaction`, `bad_signature`, `unsupported_transaction`.
Result<DecodedTransaction> decode_transaction(std::span<const std::uint8_t> raw);

// The gas that a transaction costs before it runs: 21000, 32000 more for a creation, and the cost of its data
// (EIP-2028, EIP-3860, and the floor of EIP-7623). Nodes refuse a lower gas limit.
std::uint64_t intrinsic_gas(bool creates, std::span<const std::uint8_t> data);

}  // namespace fencepost::evm
