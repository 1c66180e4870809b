// SHA-256 and HMAC-SHA-256. Keccak-256, which Ethereum uses, is in evm/.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace fencepost {

using Digest256 = std::array<std::uint8_t, 32>;

Digest256 sha256(std::string_view data);
Digest256 hmac_sha256(std::string_view key, std::string_view data);

// 64 lowercase hex digits without 0x.
std::string sha256_hex(std::string_view data);
std::string hmac_sha256_hex(std::string_view key, std::string_view data);

}  // namespace fencepost
