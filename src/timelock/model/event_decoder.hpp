// Logs of timelock contracts as raw events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "timelock/model/raw_event.hpp"

namespace fencepost::timelock {

// A log as eth_getLogs returns it. Text is lowercase hex with 0x.
struct LogFields {
  std::string address;
  std::vector<std::string> topics;
  std::string data;
  std::string tx_hash;
  std::string block_hash;
  std::int64_t block_number = 0;
  std::int64_t log_index = 0;
};

// The first topics of all events that decode() knows, in the order of EventType.
std::vector<std::string> topics_of(Standard standard);

// The log as an event. The caller adds what a log does not have: chain_id, block_timestamp, tx_from and tx_to.
//   nullopt                   another event of the contract
//   kInvalid `bad_log`        an event of ours that does not decode, with its place in the context. The caller must not
//                             go on behind it: a skipped event would be a wrong flow.
Result<std::optional<RawEvent>> decode(Standard standard, const LogFields& log);

}  // namespace fencepost::timelock
