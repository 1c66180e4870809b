// How `fencepost chain`, `node` and `whoami` show the API's answers. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

// A line for each endpoint; those to which transactions are sent are marked.
std::string chain_table(const boost::json::array& chains, std::size_t width = kFullWidth);
std::string node_table(const boost::json::array& nodes, std::size_t width = kFullWidth);
std::string caller_details(const boost::json::value& caller, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
