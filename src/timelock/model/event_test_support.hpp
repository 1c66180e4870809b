// Raw events for tests, made in one line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/hex.hpp"
#include "evm/keccak.hpp"
#include "timelock/model/raw_event.hpp"

namespace fencepost::timelock::stub {

inline std::string hash_of(std::string_view name) {
  return to_hex0x(evm::keccak256(name));
}

inline constexpr std::int64_t kGenesis = 1'700'000'000;
// Each block of these tests comes 10 seconds after the one before it.
constexpr std::int64_t time_of(std::int64_t block) {
  return kGenesis + 10 * block;
}

struct At {
  std::int64_t block = 1;
  std::int64_t log = 0;
  std::string tx = "tx";
};

inline RawEvent event(EventType type, const At& at) {
  const bool compound = type <= EventType::kCancelTransaction || type == EventType::kNewDelay;
  RawEvent out{.standard = compound ? Standard::kCompound : Standard::kOpenZeppelin,
               .type = type,
               .chain_id = 1,
               .contract = "0x" + std::string(40, 'c'),
               .flow_id = is_guard_event(type) ? "" : hash_of("flow"),
               .position = {at.block, at.log},
               .block_hash = hash_of("block " + std::to_string(at.block)),
               .block_timestamp = time_of(at.block),
               .tx_hash = hash_of(at.tx),
               .tx_from = "0x" + std::string(40, 'a'),
               .tx_to = "0x" + std::string(40, 'b')};
  if (!is_guard_event(type)) out.call = {.target = "0x" + std::string(40, 'd'), .value = 5, .data = "0x"};
  return out;
}

inline RawEvent queue(const At& at, Uint256 eta) {
  auto out = event(EventType::kQueueTransaction, at);
  out.eta = std::move(eta);
  return out;
}

inline RawEvent scheduled(const At& at, Uint256 delay, std::int64_t index = 0) {
  auto out = event(EventType::kCallScheduled, at);
  out.delay = std::move(delay);
  out.predecessor = "0x" + std::string(64, '0');
  out.call.index = index;
  return out;
}

inline RawEvent executed(const At& at, std::int64_t index = 0) {
  auto out = event(EventType::kCallExecuted, at);
  out.call.index = index;
  return out;
}

inline RawEvent salt(const At& at) {
  auto out = event(EventType::kCallSalt, at);
  out.salt = hash_of("salt");
  return out;
}

}  // namespace fencepost::timelock::stub
