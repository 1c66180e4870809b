// What a calendar says about flows, beside what the flows say. Throws as pg::Pool does.
#pragma once

#include <string>
#include <vector>

#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {

// Flows of a calendar: those that wait, the soonest first, at most `waiting`; and of those that are ready, which may be
// many and old, the `ready` ones that became so last. `filter` says which flows; its statuses, order and limit do not
// count.
awaitable<std::vector<FlowView>> calendar_flows(pg::Pool& pool, FlowFilter filter, std::size_t waiting,
                                                std::size_t ready);

struct CalendarText {
  std::string remark;     // of the contract; may be empty
  std::string signature;  // of the function that Compound calls; empty: the event has none
};

// One for each flow, in their order.
awaitable<std::vector<CalendarText>> calendar_texts(pg::Pool& pool, std::vector<FlowView> flows);

namespace sql {
extern const pg::Statement kCalendarTexts;
}  // namespace sql

}  // namespace fencepost::timelock
