#include "outbox/webhook/signature.hpp"

#include <gtest/gtest.h>

namespace fencepost::outbox {
namespace {

// The example of the specification's reference libraries: secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw.
TEST(WebhookSignature, is_that_of_the_specification) {
  const Secret key(
      std::string_view("\x31\xf2\x90\xf6\xbf\x06\x29\x8a\xab\x4f\x08\xd4\x3c\x3f\x08\x2c\xf6\x48\xa3\x62"
                       "\xda\x2d\xa4\xb0",
                       24));
  EXPECT_EQ(webhook_secret_text(key).reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  const auto signature =
      webhook_signature({{key}}, {}, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})");
  EXPECT_EQ(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(WebhookSignature, two_keys_give_two_signatures) {
  SeededRandom random(1);
  const auto a = make_webhook_key(random);
  const auto b = make_webhook_key(random);
  EXPECT_FALSE(a == b);
  const Deadline now{};
  EXPECT_EQ(webhook_signature({{a}, {b}}, now, "id", 1, "x"),
            webhook_signature({{a}}, now, "id", 1, "x") + " " + webhook_signature({{b}}, now, "id", 1, "x"));
  EXPECT_EQ(webhook_signature({{a}, {b, now}}, now, "id", 1, "x"), webhook_signature({{a}}, now, "id", 1, "x"))
      << "a key signs until its time has come";
}

}  // namespace
}  // namespace fencepost::outbox
