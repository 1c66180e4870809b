// Compares events with what the OpenAPI document and docs/events.md promise about them.
#pragma once

#include <string>
#include <vector>

#include <boost/json/value.hpp>

namespace fencepost::test {

// What is wrong with an event's envelope, a line each: it violates the schema of its type under `webhooks`, or it has a
// member that the schema does not list. (The schemas allow more members, for additions; a test does not.)
std::vector<std::string> problems_of_event(const boost::json::value& envelope);

// The same for every event in the log of that database, as it would be delivered. Empty when there is no log.
std::vector<std::string> problems_of_log(const std::string& dsn);

}  // namespace fencepost::test
