// How `fencepost webhook` shows the API's answers. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

namespace fencepost::cli {

std::string webhook_details(const boost::json::value& webhook);
std::string webhook_table(const boost::json::array& webhooks);
std::string delivery_table(const boost::json::array& deliveries);
std::string dead_letter_table(const boost::json::array& letters);

}  // namespace fencepost::cli
