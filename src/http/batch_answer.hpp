// The answer to many requests in one: each told as it would have been alone.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "base/error.hpp"
#include "http/message.hpp"

namespace fencepost::http {

struct ItemAnswer {
  unsigned status = 0;
  boost::json::object body;    // when it went well
  std::optional<Error> error;  // when it did not
};
ItemAnswer refused_item(Error error);

// 200 {"results": [{"status": …, <member>: body}, {"status": …, "error": {…}}]}, in the order of the items. What failed
// on our side is logged, since the answer as a whole is a success to the server.
Response batch_answer(std::vector<ItemAnswer> items, std::string_view member, const Request& request);

// How one refused item is told: what a problem document would say of it, without the parts that belong to an answer of
// its own, and `retryAfter` in seconds instead of the header.
boost::json::object item_error(const Error& error);

}  // namespace fencepost::http
