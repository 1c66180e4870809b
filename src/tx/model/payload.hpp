// What a caller asks to be sent, before any defaults: the `payload` of a create.
//
//   {"to": "0x…", "value": "1000", "data": "0x…", "gas": 21000, "maxFeePerGas": "…", "maxPriorityFeePerGas": "…"}
//
// Every member may be absent, and absent stays absent: that is what makes "no gas given" another request than
// "gas: 21000". The canonical form has the members in a fixed order, numbers as decimal strings, addresses and data in
// lowercase, so that two spellings of one request are one request.
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
  std::optional<std::string> to;  // lowercase; none: creates a contract
  std::optional<Uint256> value;
  std::optional<std::string> data;   // lowercase hex with 0x
  std::optional<std::uint64_t> gas;  // up to 2^63 - 1
  // Either gas_price or the other two, of which the tip is never without the cap.
  std::optional<Uint256> gas_price;
  std::optional<Uint256> max_fee_per_gas;
  std::optional<Uint256> max_priority_fee_per_gas;

  // Compact JSON, also what managed_tx.payload holds.
  std::string canonical() const;
  // SHA-256 of the canonical form: 32 bytes, raw. Equal exactly when the requests are.
  std::string hash() const;

  friend bool operator==(const Payload&, const Payload&) = default;
};

// The caller's. Amounts and fees are strings, decimal or 0x; gas may also be a JSON integer. Throws Exception kInvalid
// with the field in the context: `bad_address`, `bad_checksum`, `bad_hex` (odd or not hex), `data_too_large`,
// `gas_too_low` (under the intrinsic cost), `bad_fees` (both kinds, a tip without or above its cap), `empty_payload`
// (neither `to` nor any data), and `bad_request` for everything else, unknown members among them.
Payload read_payload(const JsonReader& in);

// One that was stored, as jsonb gives it back (which keeps no order). Only its form is checked: rules that were made
// later do not make it unreadable. Throws Exception kInternal `bad_stored_payload`.
Payload stored_payload(std::string_view json);

// The transaction that carries it out. `gas` is the caller's or the estimate.
evm::Transaction build_transaction(const Payload& payload, std::int64_t chain_id, std::int64_t nonce, std::uint64_t gas,
                                   evm::Fees fees);

}  // namespace fencepost::tx
