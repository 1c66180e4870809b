// Reads what watched contracts emitted, from one chain: blocks near the head one by one, by their hash; older ones by
// ranges that adapt to the endpoint's limits.
//
// Nothing is ever taken for empty on one endpoint's word alone where it can be checked:
//   by hash   A block whose bloom filter excludes the contracts has none of their events, and is not asked for. If the
//             bloom says "perhaps" and the endpoint says "none", the receipts of the block decide.
//   by range  The endpoint must be on the follower's branch and have reached the end of the range. If it says "none", a
//             second endpoint is asked.
// One endpoint answers about one range; only the receipts of a block may come from another one, if they name that
// block. If it lags, withholds, refuses or answers nonsense, the next one is asked for the whole range, each once; the
// one that succeeds is the first to be asked the next time. An event that does not decode, a missing transaction or a
// missing header fails the whole range.
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
#include "evm/logs/log_span.hpp"
#include "runtime/metrics.hpp"
#include "timelock/model/raw_event.hpp"
#include "timelock/model/standard.hpp"
#include "timelock/store/scan_store.hpp"
#include "timelock/workers/block_logs.hpp"
#include "timelock/workers/endpoint_choice.hpp"

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
  // The events of blocks from `first` on, as many as the endpoint gives at once, at most up to `last`. An endpoint on
  // another branch than the follower is not used. `parent`: the hash of the block before; an endpoint with another one
  // there is not used, either. Empty: it is not known. Requires: `last` is below the follower's window.
  awaitable<Result<ScannedBlocks>> by_range(std::int64_t first, std::int64_t last, Contracts contracts,
                                            std::string parent);

 private:
  // A range as one endpoint has it.
  struct Range {
    std::int64_t last = 0;
    std::vector<evm::Log> logs;
  };

  // Asks the endpoints in turn until one succeeds. Not after `bad_log`: one endpoint's word is enough to stop there.
  template <class Read>
  awaitable<Result<ScannedBlocks>> from_any_endpoint(Read read);
  awaitable<Result<ScannedBlocks>> read_blocks(const std::vector<evm::BlockHeader>& headers, const Contracts& contracts,
                                               std::size_t endpoint);
  awaitable<Result<ScannedBlocks>> read_range(std::int64_t first, std::int64_t last, const Contracts& contracts,
                                              const std::string& parent, std::size_t endpoint);
  awaitable<Result<void>> check_parent(std::int64_t first, const std::string& parent, std::size_t endpoint);
  awaitable<Result<Range>> logs_in_range(std::int64_t first, std::int64_t last, const evm::LogFilter& filter,
                                         std::size_t endpoint);
  // For a block that is too large as a range.
  awaitable<Result<Range>> logs_in_one_block(std::int64_t number, const evm::LogFilter& filter, std::size_t endpoint);
  // Asks a second endpoint about a range in which this one has no logs. Returns the last block up to which it agrees:
  // it may give less at once.
  awaitable<Result<std::int64_t>> confirm_no_logs(std::int64_t first, std::int64_t last, const evm::LogFilter& filter,
                                                  std::size_t endpoint);
  awaitable<Result<std::vector<evm::Log>>> ask(std::int64_t first, std::int64_t last, const evm::LogFilter& filter,
                                               std::size_t endpoint);
  // `newest`: the time of the last block. A log that claims a later one is not believed.
  awaitable<Result<std::vector<RawEvent>>> complete(std::vector<evm::Log> logs, const Contracts& contracts,
                                                    std::int64_t newest, std::size_t endpoint);
  awaitable<Result<void>> add_timestamps(std::vector<RawEvent>& events, std::size_t endpoint);
  awaitable<Result<void>> add_senders(std::vector<RawEvent>& events, std::size_t endpoint);
  std::vector<evm::EndpointStatus> endpoints() const;
  evm::LogSpan& span_of(std::size_t endpoint);

  evm::Chain& chain_;
  EndpointChoice choice_;
  BlockLogs block_logs_;
  std::map<std::size_t, evm::LogSpan> spans_;  // by endpoint
  Metrics::Counter& requests_total_;
  Metrics::Counter& withheld_total_;
};

}  // namespace fencepost::timelock
