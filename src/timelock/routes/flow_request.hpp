// Reads what a caller wants to know about flows. Throws as http/request_reader.hpp does. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include "http/message.hpp"
#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {

// The filters of GET /api/v1/flows, with sort, cursor and limit. `contracts` holds what the caller may see.
FlowFilter read_flow_filter(const http::Request& request);
// The filters of a calendar: all but status, removed, sort, cursor and limit.
FlowFilter read_calendar_filter(const http::Request& request);

// The text from which the next page is found.
std::string cursor_text(const FlowPlace& place, FlowSort sort);

// The flow that the path names.
FlowKey flow_of_path(const http::Request& request);

}  // namespace fencepost::timelock
