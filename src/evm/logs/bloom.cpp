#include "evm/logs/bloom.hpp"

#include <algorithm>

#include "base/hex.hpp"
#include "evm/address.hpp"
#include "evm/chain_connector.hpp"
#include "evm/keccak.hpp"

namespace fencepost::evm {
namespace {

constexpr std::size_t kBits = 8 * sizeof(Bloom);

// Bit 0 is the lowest bit of the last byte.
bool has_bit(const Bloom& bloom, std::uint16_t bit) {
  return (bloom[bloom.size() - 1 - bit / 8] >> (bit % 8) & 1) != 0;
}

bool may_contain(const Bloom& bloom, const BloomBits& bits) {
  return std::ranges::all_of(bits, [&](std::uint16_t bit) { return has_bit(bloom, bit); });
}

}  // namespace

BloomBits bloom_bits(std::span<const std::uint8_t> item) {
  const auto hash = keccak256(item);
  BloomBits bits;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>((hash[2 * i] << 8 | hash[2 * i + 1]) % kBits);
  }
  return bits;
}

bool may_log(const BlockHeader& header, std::span<const BloomBits> contracts) {
  if (!header.logs_bloom) return true;
  return std::ranges::any_of(contracts, [&](const auto& bits) { return may_contain(*header.logs_bloom, bits); });
}

bool may_log(const BlockHeader& header, std::span<const std::string> addresses) {
  if (!header.logs_bloom) return true;
  return std::ranges::any_of(addresses, [&](const std::string& address) {
    return may_contain(*header.logs_bloom, bloom_bits(address_bytes(address)));
  });
}

bool may_log(const BlockHeader& header, const LogFilter& filter) {
  if (!may_log(header, filter.addresses)) return false;
  if (!header.logs_bloom || filter.topics.empty()) return true;
  return std::ranges::any_of(filter.topics, [&](const std::string& topic) {
    const auto bytes = from_hex0x(topic);
    return !bytes || may_contain(*header.logs_bloom, bloom_bits(*bytes));
  });
}

bool bloom_covers_all_logs(std::int64_t chain_id) {
  constexpr std::array<std::int64_t, 3> kPolygon{137, 80001, 80002};
  return std::ranges::find(kPolygon, chain_id) == kPolygon.end();
}

}  // namespace fencepost::evm
