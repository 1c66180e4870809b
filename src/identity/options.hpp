// The settings of logins and sessions; docs/configuration.md describes them.
#pragma once

#include <chrono>

namespace fencepost::identity {

struct LoginOptions {
  std::chrono::milliseconds nonce_ttl = std::chrono::minutes{10};
  std::chrono::milliseconds session_idle = std::chrono::hours{24};
  std::chrono::milliseconds session_lifetime = std::chrono::days{30};
};

}  // namespace fencepost::identity
