// The `payload` of a create: the transaction that a caller asks for, before any defaults.
//
//   {"to": "0x…", "value": "1000", "data": "0x…", "gas": 21000, "maxFeePerGas": "…", "maxPriorityFeePerGas": "…",
//    "feeCeilingPerGas": "…", "feeCeilingTotal": "…"}
//
// Every member may be absent, and no default replaces an absent member: a request without `gas` differs from one with
// "gas: 21000". The canonical form has the members in a fixed order, numbers as decimal strings, and addresses and data
// in lowercase, so that two spellings of one request are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_reader.hpp"
#include "base/uint256.hpp"
#include "evm/transaction.hpp"

namespace fencepost::tx {

inline constexpr std::size_t kPayloadMaxDataBytes = 128 * 1024;

struct Payload {
  std::optional<std::string> to;  // lowercase; nullopt: creates a contract
  std::optional<Uint256> value;
  std::optional<std::string> data;   // lowercase hex with 0x
  std::optional<std::uint64_t> gas;  // up to 2^63 - 1
  // Either gas_price or the other two. max_priority_fee_per_gas is set only together with max_fee_per_gas.
  std::optional<Uint256> gas_price;
  std::optional<Uint256> max_fee_per_gas;
  std::optional<Uint256> max_priority_fee_per_gas;
  // The most that Fencepost may offer for this transaction: per gas, and times its gas limit.
  std::optional<Uint256> fee_ceiling_per_gas;
  std::optional<Uint256> fee_ceiling_total;

  // Fencepost never lowers or raises fees that the caller has set.
  bool has_own_fees() const { return gas_price || max_fee_per_gas; }

  // Compact JSON, as stored in managed_tx.payload.
  std::string canonical() const;
  // SHA-256 of the canonical form: 32 bytes, raw. Two hashes are equal exactly when the requests are equal.
  std::string hash() const;

  friend bool operator==(const Payload&, const Payload&) = default;
};

// Reads a caller's payload. Amounts and fees are strings, decimal or 0x; gas may also be a JSON integer. Throws
// Exception kInvalid with the field in the context: `bad_address`, `bad_checksum`, `bad_hex` (odd or not hex),
// `data_too_large`, `gas_too_low` (under the intrinsic cost), `bad_fees` (both kinds, a tip without or above its cap),
// `empty_payload` (neither `to` nor any data), and `bad_request` for everything else, unknown members among them.
Payload read_payload(const JsonReader& in);

// Reads a stored payload, as jsonb returns it (members in any order). Checks only its form, so that a rule that is
// added later does not make old payloads unreadable. Throws Exception kInternal `bad_stored_payload`.
Payload stored_payload(std::string_view json);

// The transaction that carries out the payload. `gas` is the caller's value or the estimate.
evm::Transaction build_transaction(const Payload& payload, std::int64_t chain_id, std::int64_t nonce, std::uint64_t gas,
                                   evm::Fees fees);

}  // namespace fencepost::tx
