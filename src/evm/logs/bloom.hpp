// The bloom filter in a block's header: which contracts may have logged in the block.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "evm/transaction.hpp"

namespace fencepost::evm {

struct BlockHeader;
struct LogFilter;

using Bloom = std::array<std::uint8_t, 256>;

// The three bits of an address or of a topic. Computing them costs a hash: keep them for addresses that are looked for
// in every block.
using BloomBits = std::array<std::uint16_t, 3>;
BloomBits bloom_bits(std::span<const std::uint8_t> item);

// Whether one of the contracts may have logged in the block. False is certain. True when the header has no bloom, and
// sometimes by chance.
bool may_log(const BlockHeader& header, std::span<const BloomBits> contracts);
// Requires: addresses in stored form; throws as address_bytes.
bool may_log(const BlockHeader& header, std::span<const std::string> addresses);
// Whether the block may have a log that the filter asks for: the bloom covers topics, too.
bool may_log(const BlockHeader& header, const LogFilter& filter);

// Whether the headers of that chain have a bloom that covers all logs. On Polygon, logs of messages from Ethereum are
// recorded beside the block, and its bloom does not cover them.
bool bloom_covers_all_logs(std::int64_t chain_id);

}  // namespace fencepost::evm
