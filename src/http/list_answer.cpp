#include "http/list_answer.hpp"

namespace fencepost::http {

boost::json::object list_body(boost::json::array items, boost::json::value next_cursor) {
  return {{"items", std::move(items)}, {"nextCursor", std::move(next_cursor)}};
}

Response list_answer(boost::json::array items, boost::json::value next_cursor) {
  return Response::json(200, list_body(std::move(items), std::move(next_cursor)));
}

}  // namespace fencepost::http
