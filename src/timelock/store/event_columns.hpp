// Raw events as columns for unnest, and rows as raw events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/params.hpp"
#include "pg/result.hpp"
#include "timelock/model/raw_event.hpp"
#include "timelock/store/raw_event_store.hpp"

// The events of one id, at the end of a WHERE that fixes chain and contract. Not `=`: the order by an id that is fixed
// is no order for the planner, which may then walk all events of the contract along another index.
#define FENCEPOST_OF_FLOW(column, id) column " BETWEEN " id " AND " id " ORDER BY " column " "

namespace fencepost::timelock {

using Texts = std::vector<std::string>;
using OptionalTexts = std::vector<std::optional<std::string>>;

// Where events stand: what all of them have.
struct EventPlaces {
  Texts contracts, types, tx_hashes, senders;
  OptionalTexts receivers;
  std::vector<std::int64_t> numbers;
  Texts hashes;
  std::vector<std::int64_t> seconds, indexes;

  void add(const RawEvent& event);
  pg::Params params(std::int64_t chain_id) const;
};

struct CompoundColumns {
  EventPlaces places;
  Texts flows, targets, values, signatures;
  OptionalTexts signature_bytes;
  Texts data, etas;

  void add(const RawEvent& event);
  pg::Params params(std::int64_t chain_id) const;
};

struct OpenZeppelinColumns {
  EventPlaces places;
  Texts flows;
  std::vector<std::optional<std::int64_t>> indexes;
  OptionalTexts targets, values, data, predecessors, delays, salts;

  void add(const RawEvent& event);
  pg::Params params(std::int64_t chain_id) const;
};

struct GuardColumns {
  EventPlaces places;
  Texts arguments;  // JSON

  void add(const RawEvent& event);
  pg::Params params(std::int64_t chain_id) const;
};

struct KeyColumns {
  std::vector<std::int64_t> chains;
  Texts contracts, flows;

  void add(const FlowKey& key);
};

// A row of the table, with the block's time as `seconds`.
RawEvent compound_event(const pg::Row& row);
RawEvent openzeppelin_event(const pg::Row& row);

}  // namespace fencepost::timelock
