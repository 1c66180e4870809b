#include "http/list_answer.hpp"

#include <boost/json/object.hpp>

namespace fencepost::http {

Response list_answer(boost::json::array items, boost::json::value next_cursor) {
  return Response::json(200, boost::json::object{{"items", std::move(items)}, {"nextCursor", std::move(next_cursor)}});
}

}  // namespace fencepost::http
