// The routes of logins, under /api/v1/auth.
#pragma once

#include "http/router.hpp"
#include "identity/login_service.hpp"

namespace fencepost::identity {

struct LoginRoutesParts {
  LoginService& service;
};

void add_login_routes(http::Router& router, const LoginRoutesParts& parts);

}  // namespace fencepost::identity
