// Flows and their events, for people who look at them. Functions throw as pg::Pool does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/pool.hpp"
#include "timelock/model/flow_status.hpp"
#include "timelock/model/raw_event.hpp"
#include "timelock/store/raw_event_store.hpp"

namespace fencepost::timelock {

// A flow as it is stored. Times are seconds since 1970.
struct FlowView {
  FlowKey key;
  std::int64_t generation = 1;
  FlowStatus status = FlowStatus::kWaiting;
  bool confirmed = false;
  bool removed = false;
  std::string initiator;
  std::optional<std::string> via;
  std::string eta;  // decimal
  std::optional<std::int64_t> due_at;
  std::optional<std::int64_t> expired_at;
  std::optional<std::string> delay;
  std::optional<std::string> predecessor;
  std::optional<std::string> blocked_by;  // the predecessor, while it was not executed and this flow is open
  std::string queue_tx_hash;
  std::int64_t queued_at = 0;
  std::optional<std::string> execute_tx_hash;
  std::optional<std::int64_t> executed_at;
  std::optional<std::string> cancel_tx_hash;
  std::optional<std::int64_t> cancelled_at;
  std::int64_t calls = 0;
  TimePoint updated_at;
};

enum class FlowSort {
  kNewest,
  kEta,        // the soonest first
  kLatestEta,  // the latest first
};

// What a search means by its text.
enum class FlowSearch {
  kNone,
  kHash,     // a flow's id, or the transaction that queued, executed or cancelled it
  kAddress,  // the contract, the initiator, the contract that the initiator called, or the target of a call
  kText,     // a part of the contract's remark, or the beginning of a Compound call's signature
};

// The place of a flow in its order. The order is complete: no two flows have the same place.
struct FlowPlace {
  std::string value;  // decimal: queued_at in seconds, or eta
  std::string flow_id;
  std::int64_t chain_id = 0;
  std::string contract;
  std::int64_t generation = 0;

  friend bool operator==(const FlowPlace&, const FlowPlace&) = default;
};

struct FlowFilter {
  std::vector<FlowStatus> statuses;  // empty: any
  std::optional<std::int64_t> chain_id;
  std::optional<std::vector<std::string>> contracts;  // only of these
  std::optional<std::string> initiator;
  std::optional<Standard> standard;
  bool removed = false;  // also flows whose beginning a reorg removed
  FlowSearch search = FlowSearch::kNone;
  std::string text;  // of the search; addresses and hashes in lowercase
  FlowSort sort = FlowSort::kNewest;
  std::optional<FlowPlace> after;
  std::size_t limit = 50;
};

// A page, in the order of `sort`. A search for an address or a text looks at 1,000 events at most: of those that call
// the address, the newest before the page (kNewest) or the newest ones.
awaitable<std::vector<FlowView>> list_flows(pg::Pool& pool, FlowFilter filter);

FlowPlace place_of(const FlowView& flow, FlowSort sort);

// One generation; nullopt of it: the newest one that was not removed, or else the newest. nullopt: there is none.
awaitable<std::optional<FlowView>> find_flow(pg::Pool& pool, FlowKey key, std::optional<std::int64_t> generation);

struct GenerationView {
  std::int64_t number = 1;
  FlowStatus status = FlowStatus::kWaiting;
  bool removed = false;
};
// Newest first.
awaitable<std::vector<GenerationView>> list_generations(pg::Pool& pool, FlowKey key, std::size_t limit);

struct StoredEvent {
  RawEvent event;
  bool orphaned = false;
};
// All events of the id in the order of the chain, also those of blocks that a reorg removed.
awaitable<std::vector<StoredEvent>> list_flow_events(pg::Pool& pool, FlowKey key, std::size_t limit);

}  // namespace fencepost::timelock
