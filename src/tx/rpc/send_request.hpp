// Reads the parameters of eth_sendTransaction, strictly. Pure: no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tx/model/payload.hpp"

namespace fencepost::tx {

struct SendRequest {
  std::string from;  // lowercase
  Payload payload;
  std::optional<std::uint64_t> nonce;  // the nonce that the client expects
};

// `params` is the JSON text of the call's parameters: an array of one transaction. Quantities are 0x and hexadecimal
// digits without leading zeros. Throws Exception kInvalid: `wrong_chain_id` when chainId is another chain's,
// `unsupported_transaction` for a type other than 0x0 and 0x2, for an access list, and for a type that contradicts the
// fees; the errors of read_payload; `bad_address`, `bad_checksum`; and `bad_request` for everything else.
SendRequest read_send_request(std::string_view params, std::int64_t chain_id);

}  // namespace fencepost::tx
