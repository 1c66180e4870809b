// What a flow calls, folded from its events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pg/pool.hpp"
#include "timelock/model/call_text.hpp"
#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {

struct FlowCalls {
  std::vector<StoredEvent> events;  // of the id, all generations
  std::string salt;                 // empty: none
  std::vector<Call> calls;
  std::vector<std::optional<ExplainedCall>> explained;  // one for each call; nullopt: it stays hex
};

// The calls of one generation. Of an id with more than 10,000 events, the first ones count. Throws as pg::Pool does.
awaitable<FlowCalls> read_flow_calls(pg::Pool& pool, FlowKey key, std::int64_t generation);

}  // namespace fencepost::timelock
