// The answer of every list route: {"items": […], "nextCursor": …}. A client passes nextCursor as ?cursor= until
// nextCursor is null.
#pragma once

#include <cstddef>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "http/message.hpp"

namespace fencepost::http {

// The body of such an answer, for a route that adds members of its own.
boost::json::object list_body(boost::json::array items, boost::json::value next_cursor = nullptr);

// 200. Pass no cursor for a whole list or for the last page.
Response list_answer(boost::json::array items, boost::json::value next_cursor = nullptr);

// The body of a page of `limit` items. Requires: `rows` was read with limit + 1, so that one row too many says that
// there is a next page. `cursor_of` gives the text from which the next page is found, for the last row shown.
template <class Row, class ToJson, class CursorOf>
boost::json::object page_body(const std::vector<Row>& rows, std::size_t limit, ToJson to_json, CursorOf cursor_of) {
  boost::json::array items;
  for (std::size_t i = 0; i < rows.size() && i < limit; ++i) items.push_back(to_json(rows[i]));
  boost::json::value next(nullptr);
  if (rows.size() > limit) next = boost::json::value(cursor_of(rows[limit - 1]));
  return list_body(std::move(items), std::move(next));
}

// 200 with that body.
template <class Row, class ToJson, class CursorOf>
Response page_answer(const std::vector<Row>& rows, std::size_t limit, ToJson to_json, CursorOf cursor_of) {
  return Response::json(200, page_body(rows, limit, to_json, cursor_of));
}

}  // namespace fencepost::http
