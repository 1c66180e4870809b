#include "identity/public_url.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "http/uri.hpp"

namespace fencepost::identity {
namespace {

// Browsers leave out the port that belongs to the scheme, and write hosts in lowercase.
LoginPlace place_of(const std::string& url) {
  const auto scheme_end = url.find("://");
  LoginPlace place{.scheme = lowercase(url.substr(0, scheme_end)), .domain = {}};
  const auto begin = scheme_end + 3;
  place.domain = lowercase(url.substr(begin, std::min(url.find_first_of("/?#", begin), url.size()) - begin));
  const std::string_view own_port = place.scheme == "https" ? ":443" : ":80";
  if (place.domain.ends_with(own_port)) place.domain.resize(place.domain.size() - own_port.size());
  return place;
}

}  // namespace

PublicUrl::PublicUrl(const std::string& configured)
    : configured_(!configured.empty()), place_(configured_ ? place_of(configured) : LoginPlace{}) {}

void PublicUrl::listens_at(const std::string& host, std::uint16_t port, std::string_view scheme) {
  const std::lock_guard lock(mutex_);
  if (!configured_) place_ = place_of(http::local_url(host, port, scheme));
}

LoginPlace PublicUrl::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

}  // namespace fencepost::identity
