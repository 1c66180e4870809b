// Flows as text for a terminal. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// "waiting", "executed (not confirmed)", "waiting (removed by a reorg)"
std::string flow_status_text(const boost::json::value& flow);

std::string flow_table(const boost::json::array& flows, std::size_t width = kFullWidth);
// One flow with its calls, steps and generations.
std::string flow_details(const boost::json::value& flow, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
