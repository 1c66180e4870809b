#include "timelock/workers/scanner.hpp"

#include <algorithm>
#include <iterator>

#include "runtime/log.hpp"
#include "timelock/service/contract_probe.hpp"

namespace fencepost::timelock {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFlowsToldAtOnce = 500;  // in one transaction

Contracts contracts_of(const std::vector<Watched>& watched) {
  Contracts out;
  for (const auto& contract : watched) out.emplace(contract.address, contract.standard);
  return out;
}

}  // namespace

Scanner::Scanner(ScannerParts parts, const ScannerOptions& options, std::function<void()> on_moved)
    : parts_(std::move(parts)),
      options_(options),
      on_moved_(std::move(on_moved)),
      source_(parts_.chain, parts_.metrics),
      processor_(parts_.node),
      planner_(parts_),
      scanned_block_(parts_.metrics.gauge("timelock_scanned_block", "The last block that was scanned for timelocks",
                                          {{"chain", parts_.chain.name()}})),
      lag_blocks_(parts_.metrics.gauge("timelock_scan_lag_blocks",
                                       "Blocks between the scanned one and the chain's head",
                                       {{"chain", parts_.chain.name()}})),
      clock_age_(parts_.metrics.gauge("timelock_clock_age_seconds",
                                      "How far the chain's clock, which moves flows, is behind this node's clock",
                                      {{"chain", parts_.chain.name()}})),
      events_total_(parts_.metrics.counter("timelock_events_total", "Events of timelocks that were read",
                                           {{"chain", parts_.chain.name()}})),
      worker_(
          parts_.chain.home(),
          {.name = "timelock_scanner",
           .chain = parts_.chain.name(),
           .interval = 1s,
           .backoff = {.initial = 200ms, .cap = 10s}},
          [this] { return step(); }, parts_.metrics) {}

void Scanner::subscribe() {
  parts_.chain.follower().subscribe("timelock", [this](const evm::ChainUpdate&) -> awaitable<> {
    worker_.wake();
    co_return;
  });
}

awaitable<> Scanner::stop() {
  co_await worker_.stop();
  co_await release_scan(parts_.database.pool(), parts_.chain.id(), parts_.node);
}

// A failure is stored before it is thrown on: `fencepost timelock list` shows it on every node.
awaitable<Worker::Next> Scanner::step() {
  auto& pool = parts_.database.pool();
  const auto state = co_await claim_scan(pool, parts_.chain.id(), parts_.node, kScanClaim);
  if (!state) co_return Worker::Next::kRest;
  std::optional<Error> failure;
  bool more = false;
  try {
    more = co_await work(*state);
  } catch (const Exception& e) {
    failure = e.error();
  }
  if (failure && co_await halted_contract(parts_, *failure, planned_from_)) co_return Worker::Next::kAgain;
  if (failure) {
    failing_ = true;
    co_await note_scan_failure(pool, parts_.chain.id(), failure->to_string());
    throw Exception(*failure);
  }
  if (std::exchange(failing_, false)) co_await note_scan_failure(pool, parts_.chain.id(), "");
  co_return more ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<bool> Scanner::work(const ScanState& state) {
  const auto contracts = co_await watched_contracts(parts_.database.pool(), parts_.chain.id());
  show(state, contracts);
  if (contracts.empty()) co_return false;
  const bool followed = co_await follow(state, contracts);
  const bool told = co_await tell(state);
  co_await read_rules(contracts, state.point.number);
  co_return followed || told;
}

ChainView Scanner::view_of(const ScanPoint& point) const {
  return {.block = point.number, .clock = point.timestamp, .confirmations = options_.confirmations};
}

void Scanner::show(const ScanState& state, const std::vector<Watched>& contracts) {
  scanned_block_.Set(static_cast<double>(state.point.number));
  const auto* head = parts_.chain.follower().window().head();
  if (head != nullptr)
    lag_blocks_.Set(static_cast<double>(std::max<std::int64_t>(head->number - state.point.number, 0)));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration<double>(now).count() - static_cast<double>(state.point.timestamp);
  clock_age_.Set(contracts.empty() ? 0 : age);
}

awaitable<bool> Scanner::follow(const ScanState& state, const std::vector<Watched>& contracts) {
  auto plan = co_await planner_.plan(state.point);
  if (planner_.behind()) co_await release_scan(parts_.database.pool(), parts_.chain.id(), parts_.node);
  if (!plan) co_return false;
  planned_from_ = plan->first;
  auto blocks = co_await read(*plan, contracts);
  events_total_.Increment(static_cast<double>(blocks.events.size()));
  auto from = state;
  while (!plan->fork && blocks.events.size() > kEventsAtOnce) {
    auto part = take_part(blocks);
    const auto through = part.through;
    if (!co_await commit(from, *plan, std::move(part))) co_return true;
    from.point = through;
  }
  co_await commit(from, *plan, std::move(blocks));
  co_return true;  // if another node was faster: look again
}

awaitable<ScannedBlocks> Scanner::read(const ScanPlan& plan, const std::vector<Watched>& contracts) {
  if (!plan.has_range() && plan.headers.empty()) throw Exception(internal("empty_plan", "a scan of no blocks"));
  const auto wanted = contracts_of(contracts);
  ScannedBlocks all;
  auto next = plan.first;
  auto parent = plan.parent;
  while (next <= plan.range_last) {
    auto part = value_or_throw(co_await source_.by_range(next, plan.range_last, wanted, parent));
    next = part.through.number + 1;
    parent = part.through.hash;
    all.through = part.through;
    std::ranges::move(part.events, std::back_inserter(all.events));
    if (!plan.fork) co_return all;
  }
  if (plan.headers.empty()) co_return all;
  if (plan.has_range() && all.through.hash != plan.headers.front().parent_hash) {
    throw Exception(unavailable("chain_moved", "The chain has changed while it was read."));
  }
  auto part = value_or_throw(co_await source_.by_hash(plan.headers, wanted));
  all.through = part.through;
  std::ranges::move(part.events, std::back_inserter(all.events));
  co_return all;
}

awaitable<bool> Scanner::commit(const ScanState& state, const ScanPlan& plan, ScannedBlocks blocks) {
  const auto chain_id = parts_.chain.id();
  const auto body = [&](pg::Transaction& tx) -> awaitable<bool> {
    if (co_await lock_scan(tx, chain_id, ScanLock::kAlone) != state) co_return false;
    FlowKeys keys;
    if (plan.fork) {
      std::vector<std::string> branch;
      branch.reserve(plan.headers.size());
      for (const auto& header : plan.headers) branch.push_back(header.hash);
      keys = co_await orphan_events(tx, chain_id, *plan.fork, std::move(branch));
      keys.merge(co_await flows_ahead_of(tx, chain_id, blocks.through.timestamp));
    }
    if (!blocks.events.empty()) keys.merge(co_await store_events(tx, chain_id, blocks.events));
    keys.merge(co_await untold_flows(tx, chain_id, blocks.through.number, kFlowsToldAtOnce));
    const auto view = view_of(blocks.through);
    co_await processor_.process(tx, chain_id, std::move(keys), view);
    co_await tell_guard_events(tx, chain_id, view.confirmed_block());
    co_await tx.query(sql::kMoveScan, chain_id, blocks.through.number, blocks.through.hash, blocks.through.timestamp,
                      plan.fork.has_value());
    co_return true;
  };
  const bool done = co_await pg::transaction(parts_.database.pool(), body);
  if (done) on_moved_();
  co_return done;
}

// A contract that does not answer as a timelock any more, because it was destroyed or replaced, keeps its last rules.
awaitable<> Scanner::read_rules(const std::vector<Watched>& contracts, std::int64_t scanned) {
  for (const auto& contract : contracts) {
    if (!contract.rules_wanted) continue;
    ProbeRequest wanted{
        .address = contract.address, .expected = contract.standard, .known_head = scanned, .fresh = true};
    const auto probe = co_await probe_contract(parts_.chain.connector(), std::move(wanted));
    if (probe) {
      co_await store_rules(parts_.database.pool(), {parts_.chain.id(), contract.address}, contract.standard,
                           probe->rules, *contract.rules_wanted);
      continue;
    }
    log::warn("the rules of a timelock could not be read", probe.error(),
              {{"chain", parts_.chain.name()}, {"contract", contract.address}});
    if (is_refusal(probe.error())) {
      co_await keep_rules(parts_.database.pool(), {parts_.chain.id(), contract.address}, *contract.rules_wanted);
    }
  }
}

awaitable<bool> Scanner::tell(const ScanState& state) {
  const auto chain_id = parts_.chain.id();
  const auto body = [&](pg::Transaction& tx) -> awaitable<bool> {
    const auto now = co_await lock_scan(tx, chain_id, ScanLock::kShared);
    if (!now || now->reorgs != state.reorgs) co_return false;
    co_await tell_guard_events(tx, chain_id, view_of(now->point).confirmed_block());
    auto keys = co_await untold_flows(tx, chain_id, now->point.number, kFlowsToldAtOnce);
    if (keys.empty()) co_return false;
    co_await processor_.process(tx, chain_id, std::move(keys), view_of(now->point));
    co_return true;
  };
  const bool told = co_await pg::transaction(parts_.database.pool(), body);
  if (told) on_moved_();
  co_return told;
}

}  // namespace fencepost::timelock
