// Where people reach this server: what a login message must name, which origin may change something with a session's
// cookie, and whether cookies are only for TLS. Any thread may call.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "identity/siwe_message.hpp"

namespace fencepost::identity {

class PublicUrl {
 public:
  // `configured`: http.public_url, http or https, checked; empty: the address that the server listens on.
  explicit PublicUrl(const std::string& configured);

  // The server listens. Only counts if no URL is configured. An address that stands for every one is 127.0.0.1 or ::1.
  void listens_at(const std::string& host, std::uint16_t port, std::string_view scheme = "http");

  LoginPlace place() const;

 private:
  const bool configured_;
  mutable std::mutex mutex_;
  LoginPlace place_;
};

}  // namespace fencepost::identity
