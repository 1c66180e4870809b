// Flows and what belongs to them as JSON.
#pragma once

#include <optional>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "timelock/model/call_text.hpp"
#include "timelock/store/flow_query_store.hpp"

namespace fencepost::timelock {

// RFC 3339, which ends with the year 9999: a later time is null, and so is none.
boost::json::value time_json(std::optional<std::int64_t> seconds);

boost::json::object to_json(const FlowView& flow);
boost::json::object to_json(const Call& call, const std::optional<ExplainedCall>& explained);
boost::json::object to_json(const StoredEvent& stored);
boost::json::object to_json(const GenerationView& generation);

}  // namespace fencepost::timelock
