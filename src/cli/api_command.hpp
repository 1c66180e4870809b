// Helpers for commands that call a node's API.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "base/error.hpp"

#include "cli/api_client.hpp"

namespace fencepost::cli {

// As find_api, with the environment of this process.
Result<ApiClient> connect(const ApiFlags& flags);

void print_json(const boost::json::value& value);
// Lists in --json have the same form as in the API.
boost::json::object json_list(boost::json::array items, boost::json::value next_cursor = nullptr);
// Prints an answer, as JSON or as the text that `text` returns, and returns kExitDone; reports an error. `text` gets
// the answer, and the width of the terminal if it wants that.
int show_text(const Result<boost::json::value>& answer, bool as_json,
              const std::function<std::string(const boost::json::value&, std::size_t width)>& text);
template <class Text>
int show_answer(const Result<boost::json::value>& answer, bool as_json, Text text) {
  return show_text(answer, as_json, [&](const boost::json::value& value, std::size_t width) -> std::string {
    if constexpr (std::is_invocable_v<Text&, const boost::json::value&, std::size_t>) {
      return text(value, width);
    } else {
      return text(value);
    }
  });
}

// A new id for a request without one.
std::string new_request_id();

// "2m"; none for "". Errors: those of parse_duration.
Result<std::optional<std::chrono::milliseconds>> read_timeout(const std::string& text);

struct ItemList {
  boost::json::array items;
  std::string next_cursor;  // of the items beyond the limit; empty: there are none
  bool more = false;        // there are items beyond the limit that no cursor leads to
};
// Which part of a list.
struct PageFlags {
  std::size_t limit = 50;
  std::string cursor = {};  // of an earlier list: begin after it; empty: at the beginning
  bool all = false;
};
inline constexpr auto kMoreWithoutCursor = "there are more: raise --limit";
inline constexpr std::size_t kMostOfAll = 1'000'000;  // items of --all: they are held in memory

// Reads page after page, up to the limit. `target` returns the path of a page, given its size and its cursor (empty:
// the first page).
Result<ItemList> read_pages(Api& api, const PageFlags& page,
                            const std::function<std::string(std::size_t limit, const std::string& cursor)>& target);
// Prints JSON, {"items": […], "nextCursor": …}, and a notice if there are more items without a cursor; or text: `none`
// for an empty list, otherwise a table and, if there are more items, a line that says how to get them.
void print_list(const ItemList& list, bool as_json, std::string_view none,
                std::string (*table)(const boost::json::array&, std::size_t width));

}  // namespace fencepost::cli
