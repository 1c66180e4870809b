// A domain's routes as one table: each row has the verb, the path, the required access and the handler.
//
//   constexpr http::RouteRow<RoutesParts> kRoutes[] = {
//       {Verb::kGet, "/api/v1/tx/{txId:uuid}", "tx:read", get_tx},
//   };
//   http::add_table<RoutesParts>(router, kRoutes, parts);
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "http/router.hpp"

namespace fencepost::http {

// `Parts` holds what the table's handlers need. Must be cheap to copy: each call gets its own copy.
template <class Parts>
struct RouteRow {
  Verb verb;
  std::string_view pattern;
  std::string_view access;  // as Access::parse reads it
  awaitable<Response> (*handler)(Request&, Parts);
};

template <class Parts>
void add_table(Router& router, std::span<const RouteRow<Parts>> table, const Parts& parts, const Refuse& refuse = {}) {
  for (const auto& row : table) {
    router.add({row.verb, std::string(row.pattern), Access::parse(row.access),
                [parts, handler = row.handler](Request& request) { return handler(request, parts); }, refuse});
  }
}

}  // namespace fencepost::http
