#include "notify/transport/curl_handle.hpp"

#include <mutex>

namespace fencepost::notify {

CurlHandle make_curl_handle() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw Exception(internal("curl", "libcurl does not start"));
  });
  CurlHandle curl(curl_easy_init());
  if (!curl) throw Exception(internal("curl", "libcurl does not start"));
  return curl;
}

}  // namespace fencepost::notify
