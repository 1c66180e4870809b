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
  EXPECT_EQ(json::serialize(transfer_body(flags, "k")),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40","idempotencyKey":"k"})");
  flags.reason = "rent";
  flags.mode = "pool";
  flags.expires_hours = 48;
  EXPECT_EQ(json::serialize(transfer_body(flags, "k")),
            R"({"guildId":"9223372036854775807","initiatorId":"1","targetId":"2","amount":"40","idempotencyKey":"k",)"
            R"("reason":"rent","mode":"pool","expiresHours":48})");
}

}  // namespace
}  // namespace fencepost::cli
