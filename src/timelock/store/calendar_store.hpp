// What a calendar says about flows, beside what the flows say. Throws as pg::Pool does.
#pragma once

#include <string>
#include <vector>

#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {

struct CalendarText {
  std::string remark;     // of the contract; may be empty
  std::string signature;  // of the function that Compound calls; empty: the event has none
};

// One for each flow, in their order.
awaitable<std::vector<CalendarText>> calendar_texts(pg::Pool& pool, std::vector<FlowView> flows);

}  // namespace fencepost::timelock
