#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/nats_server.hpp"

#include "doctor/nats.hpp"

namespace fencepost::doctor {
namespace {

using namespace std::chrono_literals;
using test::NatsServer;
using testing::HasSubstr;

outbox::NatsOptions options_of(const std::string& url) {
  outbox::NatsOptions options;
  options.urls.emplace_back(url);
  options.timeout = 2s;
  return options;
}

TEST(nats_check, passes_without_a_connection_when_nats_is_not_configured) {
  EXPECT_EQ(check_nats({}), passed("nats", "not configured: events go to no broker"));
}

TEST(nats_check, warns_of_a_missing_stream_and_does_not_create_it) {
  const NatsServer server;
  const auto finding = check_nats(options_of(server.url()));
  EXPECT_EQ(finding.status, Status::kWarn);
  EXPECT_EQ(finding.detail, "stream FENCEPOST does not exist");
  EXPECT_TRUE(server.subjects_of("FENCEPOST").empty());
}

TEST(nats_check, shows_what_the_stream_has) {
  const NatsServer server;
  server.add_stream("FENCEPOST", {"fencepost.>"});
  server.publish("fencepost.tx.TxCreated", "{}");
  const auto finding = check_nats(options_of(server.url()));
  EXPECT_EQ(finding.status, Status::kOk);
  EXPECT_THAT(finding.detail, HasSubstr("stream FENCEPOST takes fencepost.>, 1 messages, "));
}

TEST(nats_check, fails_for_a_stream_that_does_not_fit) {
  const NatsServer server;
  server.add_stream("FENCEPOST", {"orders.>"});
  const auto finding = check_nats(options_of(server.url()));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_THAT(finding.detail, HasSubstr("[orders.>]"));
}

TEST(nats_check, fails_for_a_server_that_is_down_and_shows_no_credential) {
  const auto finding = check_nats(options_of("nats://me:geheim@127.0.0.1:1"));
  EXPECT_EQ(finding.status, Status::kFail);
  EXPECT_EQ(finding.detail.find("geheim"), std::string::npos) << finding.detail;
  EXPECT_THAT(finding.detail, HasSubstr("cannot connect"));
}

}  // namespace
}  // namespace fencepost::doctor
