#include "cli/transfer/send.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

TEST(transfer_send, the_body_has_only_the_members_that_were_given) {
  TransferSendFlags flags;
  flags.guild = "9223372036854775807";
  flags.from = "1";
  flags.to = "2";
  flags.amount = "40";
  EXPECT_EQ(json::serialize(*transfer_body(flags)),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40"})");
  flags.reason = "rent";
  flags.mode = "pool";
  flags.expires_hours = 48;
  EXPECT_EQ(json::serialize(*transfer_body(flags)),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40",)"
            R"("reason":"rent","mode":"pool","expiresHours":48})");
  flags.max_retries = 20;
  EXPECT_EQ(transfer_body(flags)->at("maxRetries"), 20);
  flags.max_retries = -1;
  EXPECT_TRUE(transfer_body(flags)->at("maxRetries").is_null());
}

TEST(transfer_send, metadata_is_a_json_object) {
  TransferSendFlags flags;
  flags.metadata = R"({"order": {"id": 12345678901234567890}})";
  EXPECT_EQ(json::serialize(transfer_body(flags)->at("metadata")), R"({"order":{"id":12345678901234567890}})");
  for (const auto* bad : {"order 7", "[1]", "\"x\"", "{\"a\": 1"}) {
    flags.metadata = bad;
    const auto refused = transfer_body(flags);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, "bad_metadata") << bad;
  }
}

}  // namespace
}  // namespace fencepost::cli
