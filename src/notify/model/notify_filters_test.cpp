#include "notify/model/notify_filters.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/error.hpp"

namespace fencepost::notify {
namespace {

namespace json = boost::json;

const std::string kToken = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const std::string kOther = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
constexpr auto kTransfer = "0xa9059cbb";

NotifyFilters read(const std::string& text) {
  const auto document = json::parse(text);
  return read_notify_filters(JsonReader(document));
}

FlowCall call(const std::string& target, const std::string& selector) {
  return {.target = target, .value = "0", .data = selector, .signature = "", .selector = selector, .arguments = {}};
}

TEST(notify_filters, normalises_addresses_and_functions) {
  const auto filters = read(R"({"targets": ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8", ")" + kToken +
                            R"x("], "functions": ["transfer(address,uint256)", "0xA9059CBB"]})x");
  EXPECT_EQ(json::serialize(to_json(filters)),
            R"({"targets":[")" + kToken + R"x("],"functions":["transfer(address,uint256)","0xa9059cbb"]})x");
}

TEST(notify_filters, without_lists_are_empty) {
  EXPECT_TRUE(read("{}").empty());
  EXPECT_TRUE(read(R"({"targets": [], "functions": []})").empty());
}

TEST(notify_filters, refuse_what_is_no_address_or_function) {
  for (const auto* text : {R"({"targets": ["0x12"]})", R"({"functions": ["transfer"]})", R"({"functions": ["0xa905"]})",
                           R"x({"functions": ["transfer(address, uint256)"]})x", R"({"target": []})"}) {
    EXPECT_THROW(read(text), Exception) << text;
  }
}

TEST(notify_filters, match_a_call_that_has_both_the_target_and_the_function) {
  const NotifyFilters both{.targets = {kToken}, .functions = {"transfer(address,uint256)"}};
  EXPECT_TRUE(both.match({call(kOther, "0x12345678"), call(kToken, kTransfer)}));
  EXPECT_FALSE(both.match({call(kOther, kTransfer), call(kToken, "0x12345678")})) << "no single call has both";
  EXPECT_FALSE(both.match({}));
  const NotifyFilters target{.targets = {kToken}, .functions = {}};
  EXPECT_TRUE(target.match({call(kToken, "")}));
  const NotifyFilters selector{.targets = {}, .functions = {kTransfer}};
  EXPECT_TRUE(selector.match({call(kOther, kTransfer)}));
  EXPECT_FALSE(selector.match({call(kOther, "")}));
}

}  // namespace
}  // namespace fencepost::notify
