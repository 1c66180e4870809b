#include "outbox/feed/event_filter.hpp"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "http/request_test_support.hpp"
#include "outbox/feed/feed_test_support.hpp"

namespace fencepost::outbox {
namespace {

using http::testing::context;
using http::testing::error_from;
using http::testing::get;
using testing::catalog;
using testing::transfer_event;
using testing::tx_event;

EventFilter from_query(std::string_view query) {
  return read_event_query(catalog(), get("/api/v1/events?" + std::string(query)));
}

EventFilter from_body(std::string_view body) {
  const auto document = boost::json::parse(body);
  return read_event_filter(catalog(), JsonReader(document));
}

TEST(event_filter, an_empty_filter_matches_everything) {
  EXPECT_TRUE(EventFilter{}.matches(tx_event(1)));
  EXPECT_TRUE(EventFilter{}.matches(transfer_event(1, "7")));
}

TEST(event_filter, every_list_must_match) {
  struct Row {
    std::string query;
    bool matches;
  };
  const auto event = tx_event(1, "TxConfirmed", "0xa", 5, "tx/9");
  for (const auto& [query, matches] : std::vector<Row>{
           {"type=TxConfirmed", true},
           {"type=TxAccepted", false},
           {"type=TxAccepted,TxConfirmed", true},
           {"signer=0xa", true},
           {"signer=0xb", false},
           {"signer=0xb,0xa", true},
           {"guild=7", false},
           {"chain=5", true},
           {"chain=6", false},
           {"subject=tx/9", true},
           {"subject=tx/8", false},
           {"type=TxConfirmed&signer=0xa&chain=5&subject=tx/9", true},
           {"type=TxConfirmed&signer=0xa&chain=6&subject=tx/9", false},
       }) {
    EXPECT_EQ(from_query(query).matches(event), matches) << query;
  }
}

TEST(event_filter, an_id_of_another_domain_does_not_match) {
  EXPECT_FALSE(from_query("signer=7").matches(transfer_event(1, "7")));
  EXPECT_TRUE(from_query("guild=7").matches(transfer_event(1, "7")));
}

TEST(event_filter, a_gap_matches_every_filter) {
  EXPECT_TRUE(from_query("type=TxConfirmed&signer=0xa").matches(make_gap_event(1, 2, TimePoint{})));
}

TEST(event_filter, a_query_and_a_body_say_the_same) {
  const auto filter = from_query("type=TxConfirmed,TxAccepted&signer=0xa&chain=5&subject=tx/9&guild=7");
  EXPECT_EQ(filter, from_body(R"({"types": ["TxConfirmed", "TxAccepted"], "signers": ["0xa"], "chains": ["5"],
                                  "subjects": ["tx/9"], "guilds": ["7"]})"));
  EXPECT_EQ(from_body(serialize(boost::json::value(to_json(filter)))), filter);
}

TEST(event_filter, names_the_parameter_that_is_wrong) {
  for (const auto& [query, parameter] : std::vector<std::pair<std::string, std::string>>{
           {"type=Nonsense", "type"},
           {"type=", "type"},
           {"chain=1x", "chain"},
           {"chain=01", "chain"},
           {"signer=", "signer"},
           {"subject=other/1", "subject"},
           {"subject=tx", "subject"},
           {"colour=red", "colour"},
           {"type=TxConfirmed&type=TxAccepted", "type"},
       }) {
    const auto error = error_from([&] { from_query(query); });
    EXPECT_EQ(error.code, "invalid_parameter") << query;
    EXPECT_EQ(context(error, "parameter"), parameter) << query;
  }
}

TEST(event_filter, names_the_field_that_is_wrong) {
  EXPECT_EQ(context(error_from([] { from_body(R"({"types": ["TxConfirmed", "No"]})"); }), "field"), "types[1]");
  EXPECT_EQ(context(error_from([] { from_body(R"({"chains": [1]})"); }), "field"), "chains[0]");
}

TEST(event_filter, a_list_has_at_most_a_hundred_values) {
  std::string query = "guild=1";
  for (int i = 0; i < 100; ++i) query += ",1";
  EXPECT_EQ(error_from([&] { from_query(query); }).code, "invalid_parameter");
  EXPECT_EQ(from_query(query.substr(0, query.size() - 2)).ids.at("guild").size(), 100);
}

http::Principal caller(std::vector<std::string> scopes, http::Restrictions restrictions = {}) {
  return {.id = "k", .label = "l", .scopes = std::move(scopes), .restrictions = std::move(restrictions)};
}

TEST(event_visibility, a_caller_sees_the_domains_of_its_scopes) {
  const EventVisibility reader(catalog(), caller({"tx:read"}));
  EXPECT_TRUE(reader.allows(tx_event(1)));
  EXPECT_FALSE(reader.allows(transfer_event(1, "7")));
  const EventVisibility writer(catalog(), caller({"tx:write"}));
  EXPECT_FALSE(writer.allows(tx_event(1)));
}

TEST(event_visibility, a_restricted_caller_sees_only_its_ids) {
  const EventVisibility one(catalog(), caller({"tx:read", "transfer:read"}, {{"signer", {"0xa"}}}));
  EXPECT_TRUE(one.allows(tx_event(1, "TxConfirmed", "0xa")));
  EXPECT_FALSE(one.allows(tx_event(1, "TxConfirmed", "0xb")));
  EXPECT_TRUE(one.allows(transfer_event(1, "7")));
  const EventVisibility none(catalog(), caller({"tx:read"}, {{"signer", {}}}));
  EXPECT_FALSE(none.allows(tx_event(1)));
}

TEST(event_visibility, an_event_of_no_domain_is_for_admins) {
  const auto event = make_log_event(catalog(), 1, "Other", "other/1", TimePoint{}, "{}");
  EXPECT_FALSE(EventVisibility(catalog(), caller({"tx:read", "transfer:read"})).allows(event));
  EXPECT_TRUE(EventVisibility(catalog(), caller({"admin"})).allows(event));
}

TEST(event_visibility, a_filter_for_what_the_caller_may_not_see_is_refused) {
  const auto code = [](const http::Principal& principal, std::string_view query) {
    const auto checked = EventVisibility(catalog(), principal).check(catalog(), from_query(query));
    return checked ? std::string("ok") : checked.error().code;
  };
  const auto restricted = caller({"tx:read"}, {{"signer", {"0xa"}}});
  EXPECT_EQ(code(restricted, ""), "ok");
  EXPECT_EQ(code(restricted, "signer=0xa&type=TxConfirmed"), "ok");
  EXPECT_EQ(code(restricted, "signer=0xb"), "signer_not_allowed");
  EXPECT_EQ(code(restricted, "type=TransferCompleted"), "insufficient_scope");
  EXPECT_EQ(code(restricted, "guild=7"), "insufficient_scope");
  EXPECT_EQ(code(caller({"tx:write"}), ""), "insufficient_scope");
}

}  // namespace
}  // namespace fencepost::outbox
