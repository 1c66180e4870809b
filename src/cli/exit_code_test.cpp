#include "cli/exit_code.hpp"

#include <gtest/gtest.h>

namespace fencepost::cli {
namespace {

TEST(exit_code, an_error_for_scripts_has_code_message_exit_code_and_details) {
  const auto error = conflict("request_conflict", "another payload").with("code", "request_conflict").with("txId", "t");
  EXPECT_EQ(error_json(error, kExitFailed),
            R"({"code":"request_conflict","message":"another payload","exitCode":1,"details":{"txId":"t"}})");
  EXPECT_EQ(error_json(invalid("bad_usage", "no\nsuch"), kExitUsage),
            R"({"code":"bad_usage","message":"no\nsuch","exitCode":2,"details":{}})");
}

}  // namespace
}  // namespace fencepost::cli
