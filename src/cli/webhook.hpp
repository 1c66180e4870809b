// How `fencepost webhook` shows the API's answers. Pure.
#pragma once

#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "cli/text_table.hpp"

namespace fencepost::cli {

std::string webhook_details(const boost::json::value& webhook, std::size_t width = kFullWidth);
std::string webhook_table(const boost::json::array& webhooks, std::size_t width = kFullWidth);
std::string delivery_table(const boost::json::array& deliveries, std::size_t width = kFullWidth);
std::string dead_letter_table(const boost::json::array& letters, std::size_t width = kFullWidth);

}  // namespace fencepost::cli
