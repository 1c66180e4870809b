// Reads what watched contracts emitted, from one chain: blocks near the head one by one, by their hash; older ones by
// ranges that adapt to the endpoint's limits.
//
// Nothing is ever taken for empty on one endpoint's word alone where it can be checked:
//   by hash   A block whose bloom filter excludes the contracts has none of their events, and is not asked for. If the
//             bloom says "perhaps" and the endpoint says "none", the receipts of the block decide.
//   by range  The endpoint must have reached the end of the range. If it says "none", a second endpoint is asked.
// An event that does not decode, a missing transaction or a missing header fails the whole range.
//
// Pinned to the chain's loop.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "evm/chain.hpp"
#include "evm/logs/bloom.hpp"
#include "evm/logs/log_span.hpp"
#include "runtime/metrics.hpp"
#include "timelock/model/raw_event.hpp"
#include "timelock/model/standard.hpp"
#include "timelock/store/scan_store.hpp"

namespace fencepost::timelock {

// The watched contracts of a chain, by address.
using Contracts = std::map<std::string, Standard>;

struct ScannedBlocks {
  ScanPoint through;             // the last block of the range
  std::vector<RawEvent> events;  // in order
};

inline constexpr std::size_t kEventsAtOnce = 2'000;  // in one transaction

// Takes the first events, at least kEventsAtOnce and whole blocks. Requires: there are more than kEventsAtOnce.
ScannedBlocks take_part(ScannedBlocks& blocks);

class LogSource {
 public:
  LogSource(evm::Chain& chain, Metrics& metrics);

  // The events of these blocks. Requires: at least one header, each the parent of the next.
  awaitable<Result<ScannedBlocks>> by_hash(std::vector<evm::BlockHeader> headers, Contracts contracts);
  // The events of blocks from `first` on, as many as the endpoint gives at once, at most up to `last`.
  awaitable<Result<ScannedBlocks>> by_range(std::int64_t first, std::int64_t last, Contracts contracts);

 private:
  // A range as one endpoint has it.
  struct Range {
    std::int64_t last = 0;
    evm::Logs logs;
  };

  awaitable<Result<std::vector<evm::Log>>> logs_in_block(const evm::BlockHeader& header,
                                                         std::vector<std::string> addresses);
  // Whether the receipts of the block have logs of the contracts, too, that the endpoint withheld.
  awaitable<Result<bool>> withheld(std::string block_hash, const std::vector<std::string>& addresses);
  awaitable<Result<Range>> logs_in_range(std::int64_t first, std::int64_t last, std::vector<std::string> addresses);
  awaitable<Result<evm::Logs>> ask(std::int64_t first, std::int64_t last, const std::vector<std::string>& addresses,
                                   std::size_t endpoint);
  awaitable<Result<std::vector<RawEvent>>> complete(std::vector<evm::Log> logs, const Contracts& contracts,
                                                    evm::Endpoint endpoint);
  awaitable<Result<void>> add_timestamps(std::vector<RawEvent>& events, evm::Endpoint endpoint);
  awaitable<Result<void>> add_senders(std::vector<RawEvent>& events, evm::Endpoint endpoint);
  evm::LogSpan& span_of(std::size_t endpoint);

  evm::Chain& chain_;
  std::map<std::size_t, evm::LogSpan> spans_;  // by endpoint
  Metrics::Counter& requests_total_;
  Metrics::Counter& withheld_total_;
};

}  // namespace fencepost::timelock
