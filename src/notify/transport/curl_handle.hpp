// libcurl's easy handle, owned, and its options with checks.
#pragma once

#include <memory>

#include <curl/curl.h>

#include "base/error.hpp"

namespace fencepost::notify {

// A named type: the type of a lambda in a header differs from file to file.
struct CurlCleanup {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};
using CurlHandle = std::unique_ptr<CURL, CurlCleanup>;

// Initialises libcurl at the first call. Any thread; throws Exception `curl` if libcurl does not start. One thread at a
// time may use a handle.
CurlHandle make_curl_handle();

// Throws Exception `curl` if libcurl does not know the option or refuses the value.
template <class Value>
void set(const CurlHandle& curl, CURLoption option, Value value) {
  const auto code = curl_easy_setopt(curl.get(), option, value);
  if (code != CURLE_OK) throw Exception(internal("curl", curl_easy_strerror(code)));
}

}  // namespace fencepost::notify
