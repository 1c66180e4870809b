#include "evm/keccak.hpp"

#include <cryptopp/keccak.h>

namespace fencepost::evm {

Hash32 keccak256(std::span<const std::uint8_t> data) {
  Hash32 digest;
  CryptoPP::Keccak_256().CalculateDigest(digest.data(), data.data(), data.size());
  return digest;
}

Hash32 keccak256(std::string_view text) {
  return keccak256(std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace fencepost::evm
