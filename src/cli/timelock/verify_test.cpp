#include "cli/timelock/verify.hpp"

#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "cli/exit_code.hpp"

namespace fencepost::cli {
namespace {

namespace json = boost::json;
using testing::ElementsAre;
using testing::HasSubstr;

class PagedApi final : public Api {
 public:
  explicit PagedApi(std::deque<Result<json::value>> pages) : pages_(std::move(pages)) {}

  Result<json::value> get(const std::string&, std::chrono::milliseconds) override {
    return fail(internal("unexpected", "only posts"));
  }
  Result<json::value> post(const std::string& target, const json::value& body, bool repeatable) override {
    EXPECT_EQ(target, "/api/v1/timelocks/verify");
    EXPECT_TRUE(repeatable);
    asked.push_back(json::serialize(body));
    auto page = pages_.front();
    pages_.pop_front();
    return page;
  }

  std::vector<std::string> asked;
  std::chrono::steady_clock::time_point time;
  std::string output;

  Result<int> verify(json::object scope = {}, bool as_json = false) {
    const PollWorld world{.api = *this,
                          .print = [&](std::string_view text) { output += text; },
                          .now = [&] { return time; },
                          .sleep = [&](std::chrono::milliseconds pause) { time += pause; }};
    return verify_flows(world, std::move(scope), as_json);
  }

 private:
  std::deque<Result<json::value>> pages_;
};

json::value page(const char* more) {
  return json::parse(std::string(R"({"contracts": 1, "flows": 500, "comparedWithContract": 499, "lagging": 0)") + more +
                     "}");
}

constexpr auto kOneDifference =
    R"(, "differenceCount": 1, "differences": [{"chainId": 1, "contractAddress": "0xc0", "standard": "compound",
        "flowId": "0x11", "generation": 1, "what": "status", "stored": "ready", "expected": "waiting"}])";

TEST(timelock_verify, pages_are_added_up_and_an_unreachable_node_is_asked_again) {
  PagedApi api({page(R"(, "nextCursor": "1:0xc0:0x7f")"), fail(unavailable("unreachable", "down")), page("")});
  EXPECT_EQ(api.verify({{"chainId", 1}}), kExitDone);
  EXPECT_THAT(api.asked, ElementsAre(R"({"chainId":1})", R"({"chainId":1,"cursor":"1:0xc0:0x7f"})",
                                     R"({"chainId":1,"cursor":"1:0xc0:0x7f"})"));
  EXPECT_EQ(api.output, "1000 flows of 2 contracts checked, 998 against their contract: 0 differences\n");
}

TEST(timelock_verify, a_difference_is_named_and_sets_the_exit_code) {
  PagedApi api({page(kOneDifference)});
  EXPECT_EQ(api.verify(), kExitFailedForGood);
  EXPECT_EQ(api.output,
            "differs     status\n"
            "  contract  0xc0 on chain 1\n"
            "  flow      0x11 generation 1\n"
            "  stored    ready\n"
            "  expected  waiting\n"
            "\n"
            "500 flows of 1 contracts checked, 499 against their contract: 1 differences\n");
}

TEST(timelock_verify, what_could_not_be_checked_has_another_exit_code) {
  PagedApi api({page(
      R"(, "notChecked": [{"chainId": 1, "contractAddress": "0xc0", "flows": 3, "reason": "history_incomplete"}])")});
  EXPECT_EQ(api.verify(), kExitUnavailable);
  EXPECT_THAT(api.output, HasSubstr("not checked: 3 flows of 0xc0 on chain 1: history_incomplete\n"));
}

TEST(timelock_verify, json_is_one_object) {
  PagedApi api({page(kOneDifference)});
  EXPECT_EQ(api.verify({}, true), kExitFailedForGood);
  const auto shown = json::parse(api.output);
  EXPECT_EQ(shown.at("differenceCount"), 1);
  EXPECT_EQ(shown.at("differences").as_array().size(), 1U);
  EXPECT_EQ(shown.at("flows"), 500);
}

}  // namespace
}  // namespace fencepost::cli
