// The handlers behind the table of routes.cpp.
#pragma once

#include <optional>
#include <utility>

#include <boost/json/object.hpp>

#include "base/clock.hpp"
#include "http/message.hpp"
#include "http/request_reader.hpp"
#include "notify/routes/routes.hpp"

namespace fencepost::notify {

// The person who is logged in. Requires: a route with the access "wallet".
inline std::int64_t user_of(const http::Request& request) {
  return request.principal()->user.value();
}

// An answer about one person, which no cache may store.
inline http::Response private_answer(unsigned status, boost::json::object body) {
  return http::Response::json(status, std::move(body)).with("Cache-Control", "no-store");
}

inline boost::json::value time_or_null(std::optional<TimePoint> time) {
  return time ? boost::json::value(to_rfc3339(*time)) : boost::json::value(nullptr);
}

// me_routes.cpp
awaitable<http::Response> get_me(http::Request& request, RoutesParts parts);
awaitable<http::Response> change_me(http::Request& request, RoutesParts parts);
awaitable<http::Response> add_email_route(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_emails(http::Request& request, RoutesParts parts);
awaitable<http::Response> change_email(http::Request& request, RoutesParts parts);
awaitable<http::Response> remove_email_route(http::Request& request, RoutesParts parts);
awaitable<http::Response> send_code_again(http::Request& request, RoutesParts parts);
awaitable<http::Response> verify_email(http::Request& request, RoutesParts parts);
// subscription_routes.cpp
awaitable<http::Response> add_subscription_route(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_subscriptions(http::Request& request, RoutesParts parts);
awaitable<http::Response> get_subscription(http::Request& request, RoutesParts parts);
awaitable<http::Response> change_subscription_route(http::Request& request, RoutesParts parts);
awaitable<http::Response> remove_subscription_route(http::Request& request, RoutesParts parts);
// unsubscribe_routes.cpp
awaitable<http::Response> show_unsubscribe(http::Request& request, RoutesParts parts);
awaitable<http::Response> do_unsubscribe(http::Request& request, RoutesParts parts);
// operator_routes.cpp
awaitable<http::Response> get_mails(http::Request& request, RoutesParts parts);
awaitable<http::Response> preview_mail(http::Request& request, RoutesParts parts);

}  // namespace fencepost::notify
