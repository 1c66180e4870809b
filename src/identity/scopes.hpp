// The scopes that a key may have. A test compares them with the routes.
#pragma once

#include <array>
#include <string_view>

namespace fencepost::identity {

inline constexpr std::array<std::string_view, 13> kScopes{
    "admin",          "tx:read",        "tx:write",       "tx:operate",       "timelock:read",
    "timelock:write", "transfer:read",  "transfer:write", "transfer:operate", "mail:read",
    "webhooks:read",  "webhooks:write", "metrics:read",
};

}  // namespace fencepost::identity
