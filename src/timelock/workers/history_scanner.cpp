#include "timelock/workers/history_scanner.hpp"

#include <algorithm>
#include <iterator>

namespace fencepost::timelock {
namespace {

using namespace std::chrono_literals;

Contracts contracts_in(const HistoryRange& range, const std::vector<Watched>& watched) {
  Contracts out;
  for (const auto& contract : watched) {
    if (std::ranges::find(range.addresses, contract.address) != range.addresses.end()) {
      out.emplace(contract.address, contract.standard);
    }
  }
  return out;
}

}  // namespace

HistoryScanner::HistoryScanner(ScannerParts parts, const ScannerOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      source_(parts_.chain, parts_.metrics),
      processor_(parts_.node),
      left_(parts_.metrics.gauge("timelock_history_blocks_left",
                                 "Blocks of contracts' history that are still to be scanned",
                                 {{"chain", parts_.chain.name()}})),
      events_total_(parts_.metrics.counter("timelock_events_total", "Events of timelocks that were read",
                                           {{"chain", parts_.chain.name()}})),
      worker_(
          parts_.chain.home(),
          {.name = "timelock_history",
           .chain = parts_.chain.name(),
           .interval = 1s,
           .backoff = {.initial = 200ms, .cap = 30s}},
          [this] { return step(); }, parts_.metrics) {}

void HistoryScanner::show(const std::vector<Watched>& contracts) {
  std::int64_t left = 0;
  for (const auto& contract : contracts) {
    if (contract.has_history()) left += contract.history_last - contract.history_next + 1;
  }
  left_.Set(static_cast<double>(left));
}

std::vector<Watched> HistoryScanner::in_turn(const std::vector<Watched>& contracts) {
  std::erase_if(suspects_, [&](const std::string& address) {
    return std::ranges::none_of(
        contracts, [&](const Watched& contract) { return contract.address == address && contract.has_history(); });
  });
  std::vector<Watched> others, alone;
  for (const auto& contract : contracts) {
    if (contract.has_history()) (suspects_.contains(contract.address) ? alone : others).push_back(contract);
  }
  others_go_on_ = !others.empty();
  const auto turn = alone.empty() ? 0 : turn_++ % (alone.size() + 1);
  if (turn == 0 && !others.empty()) return others;
  if (alone.empty()) return {};
  return {alone[turn % alone.size()]};
}

void HistoryScanner::note_failure(const std::vector<std::string>& addresses) {
  if (failed_ == addresses) suspects_.insert(addresses.begin(), addresses.end());
  failed_ = addresses;
}

awaitable<Worker::Next> HistoryScanner::step() {
  auto& pool = parts_.database.pool();
  const auto contracts = co_await watched_contracts(pool, parts_.chain.id());
  show(contracts);
  auto range = next_history(in_turn(contracts));
  if (!range) co_return Worker::Next::kRest;
  const auto state = co_await claim_scan(pool, parts_.chain.id(), parts_.node, kScanClaim);
  if (!state) co_return Worker::Next::kRest;
  const auto addresses = range->addresses;
  const auto first = range->first;
  std::optional<Error> failure;
  try {
    const auto next = co_await scan(*state, contracts, std::move(*range));
    if (failed_ == addresses) failed_.clear();
    if (addresses.size() == 1) suspects_.erase(addresses.front());
    co_return next;
  } catch (const Exception& e) {
    failure = e.error();
  }
  if (co_await halted_contract(parts_, *failure, first)) co_return Worker::Next::kAgain;
  const bool suspect = addresses.size() == 1 && suspects_.contains(addresses.front());
  if (!suspect) note_failure(addresses);
  co_await note_history_failure(pool, parts_.chain.id(), addresses, failure->to_string());
  if (suspect && others_go_on_) co_return Worker::Next::kAgain;  // no pause: the next step is the others'
  throw Exception(*failure);
}

awaitable<Worker::Next> HistoryScanner::scan(const ScanState& state, const std::vector<Watched>& contracts,
                                             HistoryRange range) {
  const auto group = contracts_in(range, contracts);
  const auto& window = parts_.chain.follower().window();
  if (window.empty()) co_return Worker::Next::kRest;
  const auto bottom = window.bottom()->number;
  const auto head = window.head()->number;
  const bool near = range.first >= bottom;
  // Blocks that a reorg may still remove are read only on the branch of the scanner, and not ahead of it: then the
  // scanner finds out when they are removed.
  const auto& point = state.point;
  if (range.first > point.number) co_return Worker::Next::kRest;
  if (near && !window.contains(point.number, point.hash).value_or(false)) co_return Worker::Next::kRest;
  const auto last = near ? std::min({range.last, range.first + kBlocksAtOnce - 1, head, point.number})
                         : std::min({range.last, bottom - 1, point.number});
  auto blocks = value_or_throw(near ? co_await source_.by_hash(headers_between(window, range.first, last), group)
                                    : co_await source_.by_range(range.first, last, group, ""));
  events_total_.Increment(static_cast<double>(blocks.events.size()));
  while (blocks.events.size() > kEventsAtOnce) {
    auto part = take_part(blocks);
    if (!co_await commit(state, range, part)) co_return Worker::Next::kAgain;
    range.first = part.through.number + 1;
  }
  co_await commit(state, range, blocks);
  co_return Worker::Next::kAgain;
}

// False: the contracts or the chain have changed meanwhile.
awaitable<bool> HistoryScanner::commit(const ScanState& state, const HistoryRange& range, const ScannedBlocks& blocks) {
  const auto through = blocks.through.number;
  const auto chain_id = parts_.chain.id();
  const auto body = [&](pg::Transaction& tx) -> awaitable<bool> {
    const auto now = co_await lock_scan(tx, chain_id, ScanLock::kShared);
    if (!now || now->reorgs != state.reorgs || now->point.number < through) co_return false;
    // The contracts first: flows that the events make may be announced if this completes their history.
    if (!co_await advance_history(tx, chain_id, range, through)) co_return false;
    if (blocks.events.empty()) co_return true;
    auto keys = co_await store_events(tx, chain_id, blocks.events);
    const ChainView view{
        .block = now->point.number, .clock = now->point.timestamp, .confirmations = options_.confirmations};
    co_await processor_.process(tx, chain_id, std::move(keys), view);
    co_return true;
  };
  co_return co_await pg::transaction(parts_.database.pool(), body);
}

}  // namespace fencepost::timelock
