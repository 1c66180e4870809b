#include "outbox/webhook/address_rules.hpp"

#include <gtest/gtest.h>

#include "runtime/runtime.hpp"

namespace fencepost::outbox {
namespace {

TEST(WebhookAddress, public_addresses_are_allowed) {
  for (const auto* text :
       {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255",
        "172.32.0.0", "192.167.255.255", "198.17.255.255", "223.255.255.255", "2606:4700:4700::1111",
        "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"}) {
    EXPECT_TRUE(is_public_address(asio::ip::make_address(text))) << text;
  }
}

TEST(WebhookAddress, others_are_refused_in_every_form) {
  for (const auto* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.255",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.1",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.1",
                           "203.0.113.1",
                           "224.0.0.1",
                           "239.1.1.1",
                           "240.0.0.1",
                           "255.255.255.255",
                           "::",
                           "::1",
                           "::127.0.0.1",
                           "::8.8.8.8",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::ffff:169.254.169.254",
                           "64:ff9b::10.0.0.1",
                           "64:ff9b::7f00:1",
                           "64:ff9b:1::1",
                           "2002:7f00:1::",
                           "2002:a00:1::1",
                           "2002:c0a8:101::1",
                           "2001::1",
                           "2001:0:4136:e378:8000:63bf:3fff:fdd2",
                           "2001:db8::1",
                           "3fff::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fe80::1",
                           "fec0::1",
                           "ff02::1",
                           "100::1",
                           "4000::1"}) {
    EXPECT_FALSE(is_public_address(asio::ip::make_address(text))) << text;
  }
}

std::string code_of(std::string_view url, const WebhookOptions& options = {}) {
  const auto host = check_webhook_url(url, options);
  return host ? "ok " + *host : host.error().code;
}

TEST(WebhookUrl, is_checked) {
  EXPECT_EQ(code_of("https://example.org/hook?x=1"), "ok example.org");
  EXPECT_EQ(code_of("https://example.org:8443/"), "ok example.org");
  EXPECT_EQ(code_of("https://[2606:4700::1]/"), "ok 2606:4700::1");
  EXPECT_EQ(code_of("http://example.org/"), "webhook_https_required");
  EXPECT_EQ(code_of("https://example.org:25/"), "webhook_port_not_allowed");
  EXPECT_EQ(code_of("https://127.0.0.1/"), "webhook_address_not_allowed");
  EXPECT_EQ(code_of("https://[::1]/"), "webhook_address_not_allowed");
  EXPECT_EQ(code_of("https://[::ffff:10.0.0.1]/"), "webhook_address_not_allowed");
  for (const auto* bad : {"", "example.org", "ftp://example.org/", "https:///x", "https://user:pw@example.org/",
                          "https://user@example.org/", "https://example.org/#x", "https://example.org:0/",
                          "https://example.org:99999/", "https://exa mple.org/"}) {
    EXPECT_EQ(code_of(bad), "bad_webhook_url") << bad;
  }
  EXPECT_EQ(code_of("https://example.org/" + std::string(2000, 'x')), "bad_webhook_url");
}

// Other ways to write an address are no addresses for the URL, and resolvers may read them: names are checked again by
// what they resolve to.
TEST(WebhookUrl, odd_forms_of_addresses_do_not_pass_the_lookup) {
  for (const auto* host : {"localhost", "2130706433", "0x7f.1", "127.1"}) {
    const auto checked = run_blocking(check_webhook_host(host, {}));
    if (!checked) EXPECT_EQ(checked.error().code, "webhook_address_not_allowed") << host;
  }
  EXPECT_FALSE(run_blocking(check_webhook_host("localhost", {})));
  EXPECT_TRUE(run_blocking(check_webhook_host("localhost", {.allow_private = true})));
}

TEST(WebhookUrl, private_targets_are_allowed_by_config) {
  const WebhookOptions open{.allow_private = true, .allow_http = true};
  EXPECT_EQ(code_of("http://127.0.0.1:25/", open), "ok 127.0.0.1");
  EXPECT_EQ(code_of("http://user@127.0.0.1/", open), "bad_webhook_url");
}

}  // namespace
}  // namespace fencepost::outbox
