// FNV-1a: spreads short keys evenly and, unlike std::hash, gives the same value on every machine and in every run.
#pragma once

#include <cstdint>
#include <string_view>

namespace fencepost {

constexpr std::uint64_t stable_hash(std::string_view key) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace fencepost
