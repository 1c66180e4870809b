// To which receivers a webhook may send: rules against requests into the operator's own network. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include <boost/asio/ip/address.hpp>

#include "base/error.hpp"
#include "outbox/webhook/options.hpp"
#include "runtime/async.hpp"

namespace fencepost::outbox {

inline constexpr std::size_t kWebhookMaxUrlBytes = 2000;

// Whether the address is on the public internet. False for private, loopback, link-local, shared (carrier NAT),
// multicast, unspecified, documentation and reserved addresses, and for IPv6 forms of such IPv4 addresses (mapped,
// compatible, NAT64, 6to4, Teredo).
bool is_public_address(const asio::ip::address& address);

// The host of the URL, without brackets. Errors, kUnprocessable:
//   bad_webhook_url              not an absolute http(s) URL of at most 2,000 bytes, or with user, password or fragment
//   webhook_https_required       http without `webhooks.allow_http`
//   webhook_port_not_allowed     a port below 1024 other than 80 and 443, without `webhooks.allow_private`
//   webhook_address_not_allowed  the host is an address that is not public, without `webhooks.allow_private`
Result<std::string> check_webhook_url(std::string_view url, const WebhookOptions& options);

// Error: webhook_address_not_allowed, when the name has addresses and none is public. A name that has no address now is
// accepted: deliveries look it up again.
awaitable<Result<void>> check_webhook_host(std::string host, WebhookOptions options);

}  // namespace fencepost::outbox
