// Raw bytes as a parameter of type bytea.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "pg/params.hpp"

namespace fencepost::pg {

inline Bytes to_bytes(std::span<const std::uint8_t> raw) {
  Bytes bytes(raw.size());
  if (!raw.empty()) std::memcpy(bytes.data(), raw.data(), raw.size());
  return bytes;
}

inline Bytes to_bytes(std::string_view raw) {
  return to_bytes(std::span(reinterpret_cast<const std::uint8_t*>(raw.data()), raw.size()));
}

}  // namespace fencepost::pg
