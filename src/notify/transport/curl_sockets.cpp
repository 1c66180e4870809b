#include "notify/transport/curl_sockets.hpp"

#include <sys/socket.h>
#include <unistd.h>

namespace fencepost::notify {

void CurlSockets::watch(const CurlHandle& curl) {
  set(curl, CURLOPT_OPENSOCKETFUNCTION, &CurlSockets::on_open);
  set(curl, CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  set(curl, CURLOPT_CLOSESOCKETFUNCTION, &CurlSockets::on_close);
  set(curl, CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
}

bool CurlSockets::any_open() const {
  const std::lock_guard lock(mutex_);
  return !open_.empty();
}

void CurlSockets::shut_down() {
  const std::lock_guard lock(mutex_);
  for (const auto socket : open_) ::shutdown(socket, SHUT_RDWR);
}

void CurlSockets::refuse() {
  {
    const std::lock_guard lock(mutex_);
    refused_ = true;
  }
  shut_down();
}

curl_socket_t CurlSockets::on_open(void* self, curlsocktype, curl_sockaddr* address) {
  auto& sockets = *static_cast<CurlSockets*>(self);
  const std::lock_guard lock(sockets.mutex_);
  if (sockets.refused_) return CURL_SOCKET_BAD;
  const auto socket = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (socket >= 0) sockets.open_.push_back(socket);
  return socket;
}

// Under the lock: otherwise `shut_down` could hit a descriptor that another file has got meanwhile.
int CurlSockets::on_close(void* self, curl_socket_t socket) {
  auto& sockets = *static_cast<CurlSockets*>(self);
  const std::lock_guard lock(sockets.mutex_);
  std::erase(sockets.open_, socket);
  return ::close(socket);
}

}  // namespace fencepost::notify
