#include "node/event_catalog.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "http/request_test_support.hpp"
#include "outbox/feed/event_filter.hpp"

namespace fencepost {
namespace {

using http::testing::error_from;
using http::testing::get;

outbox::EventFilter filter(const std::string& query) {
  return outbox::read_event_query(event_catalog(), get("/api/v1/events?" + query));
}

const std::string kContract = "0x" + std::string(40, 'a');
const std::string kFlow = "0x" + std::string(64, 'b');

TEST(event_catalog, a_filter_takes_the_subjects_that_events_have) {
  for (const auto& good : {std::string("tx/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
                           std::string("transfer/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
                           "timelock/compound/1/" + kContract, "timelock/openzeppelin/10/" + kContract + "/" + kFlow}) {
    EXPECT_EQ(filter("subject=" + good).subjects, std::vector{good});
  }
  EXPECT_EQ(filter("subject=tx/0190A1B2-C3D4-7E5F-8A9B-0C1D2E3F4A5B").subjects,
            std::vector<std::string>{"tx/0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"});
}

TEST(event_catalog, a_filter_refuses_a_subject_that_no_event_can_have) {
  for (const std::string& bad :
       {std::string("tx"), std::string("tx/"), std::string("tx/9"), std::string("log"), std::string("mail/1"),
        "timelock/" + kContract, "timelock/maker/1/" + kContract, "timelock/compound/0/" + kContract,
        "timelock/compound/01/" + kContract, std::string("timelock/compound/1/0x12"),
        "timelock/compound/1/" + kContract + "/0x12", "timelock/compound/1/" + kContract + "/" + kFlow + "/x"}) {
    const auto error = error_from([&] { filter("subject=" + bad); });
    EXPECT_EQ(error.code, "invalid_parameter") << bad;
    EXPECT_NE(error.message.find("subject"), std::string::npos) << error.message;
  }
}

TEST(event_catalog, a_filter_refuses_a_chain_that_no_event_can_have) {
  EXPECT_EQ(filter("chain=1,31337").chains.size(), 2U);
  for (const auto* bad : {"0", "01", "x", ""}) {
    EXPECT_EQ(error_from([&] { filter("chain=" + std::string(bad)); }).code, "invalid_parameter") << bad;
  }
}

}  // namespace
}  // namespace fencepost
