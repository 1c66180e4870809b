#include "cli/transfer/account.hpp"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

namespace fencepost::cli {
namespace {

std::string change(const GuildSettingsFlags& flags) {
  const auto body = settings_change(flags);
  return body ? boost::json::serialize(*body) : body.error().code;
}

TEST(transfer_account, a_change_of_settings_has_only_what_was_given) {
  EXPECT_EQ(change({}), "{}") << "nothing to change: the settings are shown";
  EXPECT_EQ(change({.daily_limit = "2000", .cooldown = "60", .reason = "r"}),
            R"({"dailyLimit":"2000","cooldownSeconds":60,"reason":"r"})");
  EXPECT_EQ(change({.daily_limit = "none", .expiry_hours = "48", .max_retries = "none", .reason = "r"}),
            R"({"dailyLimit":null,"defaultExpiryHours":48,"maxRetries":null,"reason":"r"})");
  EXPECT_EQ(change({.max_retries = "7", .reason = "r"}), R"({"maxRetries":7,"reason":"r"})");
}

TEST(transfer_account, a_cooldown_is_seconds_or_a_duration) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", R"({"cooldownSeconds":0,"reason":"r"})"},
      {"5m", R"({"cooldownSeconds":300,"reason":"r"})"},
      {"1d", R"({"cooldownSeconds":86400,"reason":"r"})"},
      {"007", "bad_cooldown"},
      {"5", R"({"cooldownSeconds":5,"reason":"r"})"},
      {"250ms", "bad_cooldown"},
      {"-5", "bad_cooldown"},
      {"soon", "bad_cooldown"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(change({.cooldown = text, .reason = "r"}), expected) << text;
  }
}

TEST(transfer_account, a_change_needs_a_reason_and_a_reason_needs_a_change) {
  EXPECT_EQ(change({.cooldown = "5m"}), "reason_required");
  EXPECT_EQ(change({.reason = "r"}), "nothing_to_change");
}

}  // namespace
}  // namespace fencepost::cli
