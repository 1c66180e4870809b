// Flows as text for a terminal. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace fencepost::cli {

// "waiting", "executed (not confirmed)", "waiting (removed by a reorg)"
std::string flow_status_text(const boost::json::value& flow);

std::string flow_table(const boost::json::array& flows);
// One flow with its calls, steps and generations.
std::string flow_details(const boost::json::value& flow);

}  // namespace fencepost::cli
