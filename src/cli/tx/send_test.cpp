#include "cli/tx/send.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost::cli {
namespace {

namespace json = boost::json;

TEST(tx_send, the_body_has_only_the_members_that_were_given) {
  TxSendFlags flags;
  flags.signer = "0xaa";
  flags.to = "0xbb";
  flags.value = "1.5ether";
  EXPECT_EQ(json::serialize(*create_body(flags, "r1")),
            R"({"signer":"0xaa","requestId":"r1","payload":{"to":"0xbb","value":"1500000000000000000"}})");
}

TEST(tx_send, a_create_carries_every_flag) {
  TxSendFlags flags;
  flags.signer = "0xaa";
  flags.data = "0x00";
  flags.gas = "100000";
  flags.max_fee = "30gwei";
  flags.max_priority_fee = "0x1";
  flags.chain_id = 31337;
  flags.preflight = true;
  EXPECT_EQ(json::serialize(*create_body(flags, "r1")),
            R"({"signer":"0xaa","requestId":"r1","payload":{"data":"0x00","gas":"100000","maxFeePerGas":"30000000000",)"
            R"("maxPriorityFeePerGas":"1"},"chainId":31337,"preflight":true})");
}

TEST(tx_send, a_bad_amount_names_its_flag) {
  TxSendFlags flags;
  flags.gas_price = "cheap";
  const auto body = create_body(flags, "r1");
  ASSERT_FALSE(body.has_value());
  EXPECT_EQ(body.error().code, "bad_amount");
  EXPECT_EQ(body.error().context, (Error::Context{{"flag", "--gas-price"}}));
}

}  // namespace
}  // namespace fencepost::cli
