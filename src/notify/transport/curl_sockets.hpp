// The open sockets of one libcurl handle, so that another thread can end a transfer that waits for its peer.
#pragma once

#include <mutex>
#include <vector>

#include "notify/transport/curl_handle.hpp"

namespace fencepost::notify {

// Must outlive the handles that it watches.
class CurlSockets {
 public:
  CurlSockets() = default;
  CurlSockets(const CurlSockets&) = delete;
  CurlSockets& operator=(const CurlSockets&) = delete;

  void watch(const CurlHandle& curl);

  // Any thread.
  bool any_open() const;
  // Shuts the open sockets down: a peer that waits for us, and a thread that waits for the peer, see the end of the
  // connection at once. Any thread.
  void shut_down();
  // The same, and refuses new sockets from then on. Any thread.
  void refuse();

 private:
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* self, curl_socket_t socket);

  mutable std::mutex mutex_;
  std::vector<curl_socket_t> open_;  // two while libcurl tries IPv6 and IPv4
  bool refused_ = false;
};

}  // namespace fencepost::notify
