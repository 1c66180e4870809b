#include "timelock/routes/flow_request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "http/request_test_support.hpp"

namespace fencepost::timelock {
namespace {

using http::testing::context;
using http::testing::error_from;

const std::string kContract = "0x" + std::string(40, 'c');
const std::string kHash = "0x" + std::string(64, 'a');

http::Request request_for(const std::string& query, http::Restrictions restrictions = {}) {
  auto request = http::testing::get("/api/v1/flows" + query);
  request.set_principal({.id = "k", .label = "test", .scopes = {"timelock:read"}, .restrictions = restrictions});
  return request;
}
FlowFilter filter_of(const std::string& query) {
  return read_flow_filter(request_for(query));
}

TEST(flow_request, without_parameters_everything_is_listed_newest_first) {
  const auto filter = filter_of("");
  EXPECT_TRUE(filter.statuses.empty());
  EXPECT_FALSE(filter.contracts || filter.chain_id || filter.initiator || filter.standard || filter.after);
  EXPECT_EQ(filter.sort, FlowSort::kNewest);
  EXPECT_EQ(filter.search, FlowSearch::kNone);
  EXPECT_FALSE(filter.removed);
}

TEST(flow_request, takes_several_statuses) {
  EXPECT_EQ(filter_of("?status=ready,waiting,ready").statuses, (std::vector{FlowStatus::kReady, FlowStatus::kWaiting}));
  for (const std::string bad : {"", "open", "ready,", ",ready", "READY"}) {
    const auto error = error_from([&] { filter_of("?status=" + bad); });
    EXPECT_EQ(error.code, "invalid_parameter") << bad;
    EXPECT_EQ(context(error, "parameter"), "status");
  }
}

TEST(flow_request, a_search_is_a_hash_an_address_or_text) {
  EXPECT_EQ(filter_of("?q=0X" + std::string(64, 'A')).text, kHash);
  EXPECT_EQ(filter_of("?q=" + kHash).search, FlowSearch::kHash);
  EXPECT_EQ(filter_of("?q=" + kContract).search, FlowSearch::kAddress);
  for (const std::string text : {"transfer(", "12", "0", "tr%C3%A9sor"}) {
    EXPECT_EQ(filter_of("?q=" + text).search, FlowSearch::kText) << text;
  }
  for (const std::string& bad :
       {std::string(), std::string("0x12"), std::string("0xzz"), std::string(101, 'a'), std::string("a%0Ab")}) {
    EXPECT_EQ(error_from([&] { filter_of("?q=" + bad); }).code, "invalid_parameter") << bad;
  }
}

TEST(flow_request, a_cursor_is_read_back_and_belongs_to_its_sort) {
  const FlowPlace place{"1763423145", kHash, 31337, kContract, 2};
  const auto newest = cursor_text(place, FlowSort::kNewest);
  EXPECT_EQ(filter_of("?cursor=" + newest).after, place);
  EXPECT_EQ(filter_of("?sort=eta&cursor=" + cursor_text(place, FlowSort::kEta)).after, place);
  for (const auto& bad : {"?sort=eta&cursor=" + newest, std::string("?cursor=x"), "?cursor=" + newest + ".1",
                          fmt::format("?cursor=n.-1.{}.1.{}.1", kHash, kContract),
                          fmt::format("?cursor=n.9999999999999999999.{}.1.{}.1", kHash, kContract)}) {
    EXPECT_EQ(context(error_from([&] { filter_of(bad); }), "parameter"), "cursor") << bad;
  }
}

TEST(flow_request, a_limited_key_sees_its_contracts_only) {
  const std::string other = "0x" + std::string(40, 'd');
  const http::Restrictions limits{{"contract", {kContract}}};
  EXPECT_EQ(read_flow_filter(request_for("", limits)).contracts, std::vector{kContract});
  EXPECT_EQ(read_flow_filter(request_for("?contract=" + kContract, limits)).contracts, std::vector{kContract});
  EXPECT_EQ(error_from([&] { read_flow_filter(request_for("?contract=" + other, limits)); }).code,
            "contract_not_allowed");
}

TEST(flow_request, unknown_parameters_and_values_are_refused) {
  for (const auto* bad :
       {"?chainId=0", "?chainId=-1", "?sort=oldest", "?removed=1", "?standard=gnosis", "?limit=0", "?colour=red"}) {
    EXPECT_EQ(error_from([&] { filter_of(bad); }).code, "invalid_parameter") << bad;
  }
  EXPECT_EQ(error_from([&] { filter_of("?initiator=0x12"); }).code, "bad_address");
}

TEST(flow_request, a_calendar_has_what_is_open_in_the_order_of_time) {
  const auto filter = read_calendar_filter(request_for("?chainId=1"));
  EXPECT_EQ(filter.statuses, (std::vector{FlowStatus::kWaiting, FlowStatus::kReady}));
  EXPECT_EQ(filter.sort, FlowSort::kEta);
  EXPECT_EQ(error_from([&] { read_calendar_filter(request_for("?status=ready")); }).code, "invalid_parameter");
}

}  // namespace
}  // namespace fencepost::timelock
