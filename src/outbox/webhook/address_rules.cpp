#include "outbox/webhook/address_rules.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "http/errors.hpp"
#include "http/message.hpp"
#include "runtime/completion.hpp"

namespace fencepost::outbox {
namespace {

using asio::ip::address_v4;
using asio::ip::address_v6;
using http::unprocessable;

constexpr auto kLookupTimeout = std::chrono::seconds(3);

struct Net4 {
  std::uint32_t net;
  int bits;
};

constexpr std::uint32_t ip4(unsigned a, unsigned b, unsigned c, unsigned d) {
  return a << 24 | b << 16 | c << 8 | d;
}

// IANA's special-purpose registry: what is not reachable from the public internet, or reaches many hosts.
constexpr Net4 kNotPublic4[] = {
    {ip4(0, 0, 0, 0), 8},        // this host, this network
    {ip4(10, 0, 0, 0), 8},       // private
    {ip4(100, 64, 0, 0), 10},    // carrier NAT
    {ip4(127, 0, 0, 0), 8},      // loopback
    {ip4(169, 254, 0, 0), 16},   // link-local, cloud metadata
    {ip4(172, 16, 0, 0), 12},    // private
    {ip4(192, 0, 0, 0), 24},     // protocol assignments
    {ip4(192, 0, 2, 0), 24},     // documentation
    {ip4(192, 88, 99, 0), 24},   // 6to4 relays
    {ip4(192, 168, 0, 0), 16},   // private
    {ip4(198, 18, 0, 0), 15},    // benchmarks
    {ip4(198, 51, 100, 0), 24},  // documentation
    {ip4(203, 0, 113, 0), 24},   // documentation
    {ip4(224, 0, 0, 0), 4},      // multicast
    {ip4(240, 0, 0, 0), 4},      // reserved, broadcast
};

bool is_public4(const address_v4& address) {
  return std::ranges::none_of(kNotPublic4, [value = address.to_uint()](const Net4& net) {
    return value >> (32 - net.bits) == net.net >> (32 - net.bits);
  });
}

bool starts_with(const address_v6::bytes_type& bytes, std::initializer_list<unsigned char> prefix) {
  return std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

address_v4 embedded(const address_v6::bytes_type& bytes, std::size_t offset) {
  return address_v4({bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]});
}

bool is_public6(const address_v6& address) {
  const auto bytes = address.to_bytes();
  if (starts_with(bytes, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})) return is_public4(embedded(bytes, 12));  // mapped
  if (starts_with(bytes, {0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0}))
    return is_public4(embedded(bytes, 12));                                      // NAT64
  if (starts_with(bytes, {0x20, 0x02})) return is_public4(embedded(bytes, 2));   // 6to4
  if ((bytes[0] & 0xe0) != 0x20) return false;                                   // only 2000::/3 is global unicast
  if (starts_with(bytes, {0x20, 0x01}) && (bytes[2] & 0xfe) == 0) return false;  // 2001::/23: Teredo, ORCHID, …
  if (starts_with(bytes, {0x20, 0x01, 0x0d, 0xb8})) return false;                // documentation
  return !(starts_with(bytes, {0x3f, 0xff}) && (bytes[2] & 0xf0) == 0);          // documentation
}

Error not_allowed(std::string_view host) {
  return unprocessable("webhook_address_not_allowed",
                       fmt::format("{} is not on the public internet; a webhook may send there only with "
                                   "webhooks.allow_private: true",
                                   host));
}

}  // namespace

bool is_public_address(const asio::ip::address& address) {
  return address.is_v4() ? is_public4(address.to_v4()) : is_public6(address.to_v6());
}

Result<std::string> check_webhook_url(std::string_view url, const WebhookOptions& options) {
  const auto bad = [](std::string_view why) {
    return fail(unprocessable("bad_webhook_url", fmt::format("url: {}", why)));
  };
  if (url.size() > kWebhookMaxUrlBytes) return bad(fmt::format("at most {} bytes", kWebhookMaxUrlBytes));
  const auto parsed = boost::urls::parse_uri(boost::urls::string_view(url.data(), url.size()));
  if (!parsed) return bad("expected an absolute URL such as https://example.org/hook");
  const bool tls = parsed->scheme_id() == boost::urls::scheme::https;
  if (!tls && parsed->scheme_id() != boost::urls::scheme::http) return bad("expected the scheme https");
  if (parsed->has_userinfo()) return bad("user and password are not allowed; receivers verify the signature");
  if (parsed->has_fragment()) return bad("a fragment is never sent; leave it out");
  std::string host = parsed->host_address();
  if (host.empty()) return bad("it has no host");
  if (!tls && !options.allow_http) {
    return fail(unprocessable("webhook_https_required", "url: expected https; http needs webhooks.allow_http: true"));
  }
  if (parsed->has_port()) {
    // Not port_number(): it does not reject ports over 65535.
    const auto port = http::detail::parse_parameter<std::uint16_t>(std::string_view(parsed->port()));
    if (!port || *port == 0) return bad("expected a port from 1 to 65535");
    if (*port < 1024 && *port != 80 && *port != 443 && !options.allow_private) {
      return fail(unprocessable("webhook_port_not_allowed", "url: expected port 80, 443, or 1024 and above"));
    }
  }
  boost::system::error_code not_an_address;
  const auto address = asio::ip::make_address(host, not_an_address);
  if (!not_an_address && !options.allow_private && !is_public_address(address)) return fail(not_allowed(host));
  return host;
}

awaitable<Result<void>> check_webhook_host(std::string host, WebhookOptions options) {
  struct Lookup {
    explicit Lookup(Executor executor) : resolver(executor), done(executor) {}
    asio::ip::basic_resolver<asio::ip::tcp, Executor> resolver;
    Completion<std::vector<asio::ip::address>> done;
  };
  boost::system::error_code not_an_address;
  asio::ip::make_address(host, not_an_address);
  if (options.allow_private || !not_an_address) co_return Result<void>();
  const auto lookup = std::make_shared<Lookup>(co_await this_executor());
  lookup->resolver.async_resolve(host, "443", [lookup](const auto&, const auto& results) {
    std::vector<asio::ip::address> found;
    for (const auto& entry : results) found.push_back(entry.endpoint().address());
    lookup->done.complete(std::move(found));
  });
  if (!co_await lookup->done.wait(std::chrono::steady_clock::now() + kLookupTimeout)) co_return Result<void>();
  const auto& found = lookup->done.value();
  if (!found.empty() && std::ranges::none_of(found, is_public_address)) co_return fail(not_allowed(host));
  co_return Result<void>();
}

}  // namespace fencepost::outbox
