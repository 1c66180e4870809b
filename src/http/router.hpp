// One table of routes, looked up by path segment.
//
//   router.add({Verb::kGet, "/api/v1/tx/{txId:uuid}", Access::scope("tx:read"), handler});
//
// A pattern's segment is a literal or one parameter:
//   {name}          text, percent-decoded, not empty
//   {name:id}       an id as base/id_text.hpp writes it
//   {name:uuid}     8-4-4-4-12 hexadecimal digits; handlers get lowercase
//   {name:secret}   text; the caller's credential: Request::path_secret, and "***" in logs
//   {name:rest}     last only: the rest of the path, including slashes, never with a ".." segment
// A literal wins over a parameter. Paths are compared exactly: "/a/" is not "/a".
//
// Add all routes before the server starts; after that any thread may look up.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/auth.hpp"
#include "http/message.hpp"

namespace fencepost::http {

// Runs on the connection's loop. A handler turns the error of a Result into a response with Response::problem. The
// server does the same with an Exception that leaves the handler.
using Handler = std::function<awaitable<Response>(Request&)>;
// Writes the answer of a request that the server refuses before or after the handler: authentication, an exception.
using Refuse = std::function<Response(const Error&, const Request&)>;

struct Route {
  Verb verb;
  std::string pattern;
  Access access;
  Handler handler;
  Refuse refuse = {};  // empty: a problem document
};

class Router {
 public:
  Router();
  ~Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;

  // Throws Exception `bad_route` for a pattern that is malformed, already registered, or differs from another one only
  // in a parameter's name or type.
  void add(Route route);

  struct Entry {
    Verb verb;
    std::string pattern;
    std::string access;  // Access::to_string
  };
  // In order of registration. A test compares them with the OpenAPI document.
  std::vector<Entry> routes() const;
  std::size_t size() const { return routes_.size(); }
  const Route& route(std::size_t index) const { return *routes_[index]; }

  struct Found {
    std::size_t index;  // of the route; HEAD finds the GET route
  };
  struct NoPath {};
  struct NoVerb {
    std::string allow;  // the value for `Allow`
  };
  using Match = std::variant<Found, NoPath, NoVerb, Error>;
  // Sets the request's parameters when a route is found. The Error names the parameter that does not parse.
  Match match(Request& request) const;

 private:
  struct Node;

  std::vector<std::unique_ptr<Route>> routes_;
  std::unique_ptr<Node> root_;
};

}  // namespace fencepost::http
