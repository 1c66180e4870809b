// What commands that ask a node have in common.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_client.hpp"

namespace fencepost::cli {

// As find_api, with the environment of this process.
Result<ApiClient> connect(const ApiFlags& flags);

void print_json(const boost::json::value& value);
// Lists in --json have the form that they have in the API.
boost::json::object json_list(boost::json::array items, boost::json::value next_cursor = nullptr);
// Prints an answer, as JSON or as `text` makes it for people, and returns kExitDone; reports the error if it is one.
int show_answer(const Result<boost::json::value>& answer, bool as_json,
                const std::function<std::string(const boost::json::value&)>& text);

// An id for a request whose caller gave none.
std::string new_request_id();

// "2m"; none for "". Errors: those of parse_duration.
Result<std::optional<std::chrono::milliseconds>> read_timeout(const std::string& text);

struct ItemList {
  boost::json::array items;
  std::string next_cursor;  // where the items beyond the limit begin; empty: there are none
};
// Page after page, up to `limit` items. `target` says where a page of so many is, from the cursor on ("": the first).
Result<ItemList> read_pages(Api& api, std::size_t limit,
                            const std::function<std::string(std::size_t limit, const std::string& cursor)>& target);
// As JSON, {"items": […], "nextCursor": …}; or for people: `none`, or a table and whether that is all.
void print_list(const ItemList& list, bool as_json, std::string_view none,
                std::string (*table)(const boost::json::array&));

}  // namespace fencepost::cli
