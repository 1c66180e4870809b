#include "identity/public_url.hpp"

#include <gtest/gtest.h>

namespace fencepost::identity {
namespace {

TEST(public_url, is_written_as_browsers_write_origins) {
  EXPECT_EQ(PublicUrl("https://Fencepost.Example.org").place().origin(), "https://fencepost.example.org");
  EXPECT_EQ(PublicUrl("https://a.org:443/x").place().domain, "a.org");
  EXPECT_EQ(PublicUrl("http://a.org:80").place().origin(), "http://a.org");
  EXPECT_EQ(PublicUrl("http://a.org:443").place().domain, "a.org:443");
}

TEST(public_url, is_where_the_server_listens_unless_it_is_configured) {
  PublicUrl derived("");
  derived.listens_at("0.0.0.0", 8080);
  EXPECT_EQ(derived.place().origin(), "http://127.0.0.1:8080");
  derived.listens_at("::", 8080);
  EXPECT_EQ(derived.place().origin(), "http://[::1]:8080");
  derived.listens_at("fe80::1", 8080);
  EXPECT_EQ(derived.place().origin(), "http://[fe80::1]:8080");
  PublicUrl configured("https://a.org");
  configured.listens_at("127.0.0.1", 8080);
  EXPECT_EQ(configured.place().origin(), "https://a.org");
}

}  // namespace
}  // namespace fencepost::identity
