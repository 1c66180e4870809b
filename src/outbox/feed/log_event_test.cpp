#include "outbox/feed/log_event.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "outbox/feed/feed_test_support.hpp"

namespace fencepost::outbox {
namespace {

namespace json = boost::json;
using testing::catalog;

TEST(log_event, the_envelope_is_a_cloud_event) {
  const auto event =
      make_log_event(catalog(), 118, "TxConfirmed", "tx/0193", TimePoint{std::chrono::microseconds(1'500'000)},
                     R"({"txId": "0193", "signer": "0xa", "chainId": 31337})");
  EXPECT_EQ(event.envelope, R"({"specversion":"1.0","id":"118","source":"/fencepost","type":"TxConfirmed",)"
                            R"("subject":"tx/0193","time":"1970-01-01T00:00:01.500000Z",)"
                            R"("datacontenttype":"application/json","chain":"31337",)"
                            R"("data":{"txId": "0193", "signer": "0xa", "chainId": 31337}})");
}

TEST(log_event, knows_the_values_that_filters_compare) {
  const auto event = testing::tx_event(7, "TxAccepted", "0xb", 5, "tx/9");
  EXPECT_EQ(event.seq, 7);
  EXPECT_EQ(event.type, "TxAccepted");
  EXPECT_EQ(event.subject, "tx/9");
  EXPECT_EQ(event.chain, "5");
  EXPECT_EQ(event.domain, &catalog().domains()[0]);
  EXPECT_EQ(event.id, "0xb");
}

TEST(log_event, an_event_without_a_chain_has_no_such_attribute) {
  const auto event = testing::transfer_event(1, "77");
  EXPECT_EQ(event.chain, "");
  EXPECT_EQ(event.id, "77");
  EXPECT_FALSE(json::parse(event.envelope).as_object().contains("chain"));
}

TEST(log_event, a_subject_with_quotes_stays_valid_json) {
  const auto event = make_log_event(catalog(), 1, "T\"", "a\"b\\", TimePoint{}, "{}");
  EXPECT_EQ(json::parse(event.envelope).at("subject").as_string(), "a\"b\\");
  EXPECT_EQ(event.domain, nullptr);
}

TEST(log_event, integers_over_64_bits_are_sent_as_they_are_stored) {
  const auto event =
      make_log_event(catalog(), 1, "TxConfirmed", "tx/1", TimePoint{}, R"({"n": 123456789012345678901234567890})");
  EXPECT_NE(event.envelope.find("123456789012345678901234567890"), std::string::npos);
}

TEST(log_event, data_that_is_not_an_object_is_refused) {
  EXPECT_THROW(make_log_event(catalog(), 1, "T", "tx/1", TimePoint{}, "[1]"), Exception);
  EXPECT_THROW(make_log_event(catalog(), 1, "T", "tx/1", TimePoint{}, "{"), Exception);
}

TEST(log_event, a_gap_says_from_where_to_where) {
  const auto gap = make_gap_event(3, 9, TimePoint{});
  EXPECT_EQ(gap.seq, 9);
  const auto document = json::parse(gap.envelope);
  EXPECT_EQ(document.at("type").as_string(), "EventsGap");
  EXPECT_EQ(document.at("data"), (json::value{{"gap", true}, {"from", "3"}, {"to", "9"}}));
}

}  // namespace
}  // namespace fencepost::outbox
