#include "cli/transfer_commands.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost {
namespace {

namespace json = boost::json;

TEST(transfer_commands, a_transfer_says_only_what_was_given) {
  TransferSendFlags flags;
  flags.guild = "9223372036854775807";
  flags.from = "1";
  flags.to = "2";
  flags.amount = "40";
  EXPECT_EQ(json::serialize(transfer_body(flags, "k")),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40","idempotencyKey":"k"})");
  flags.reason = "rent";
  flags.mode = "pool";
  flags.expires_hours = 48;
  EXPECT_EQ(json::serialize(transfer_body(flags, "k")),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40","idempotencyKey":"k",)"
            R"("reason":"rent","mode":"pool","expiresHours":48})");
}

TEST(transfer_commands, a_list_asks_for_what_is_wanted) {
  TransferListFlags flags;
  flags.guild = "7";
  EXPECT_EQ(transfer_list_target(flags, 50, ""), "/api/v1/transfers?guildId=7&limit=50");
  flags.status = "a&b";
  EXPECT_EQ(transfer_list_target(flags, 7, "12"), "/api/v1/transfers?guildId=7&limit=7&status=a%26b&cursor=12");
}

}  // namespace
}  // namespace fencepost
