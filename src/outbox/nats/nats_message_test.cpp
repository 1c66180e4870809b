#include "outbox/nats/nats_message.hpp"

#include <gtest/gtest.h>

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;

const EventDomain kTx{.name = "tx", .read_scope = "tx:read", .kind = "signer", .id_member = "signer", .types = {}};

LogEvent confirmed() {
  LogEvent event;
  event.seq = 42;
  event.type = "TxConfirmed";
  event.subject = "tx/1f";
  event.at = TimePoint(1'700'000'000'123'456us);
  event.domain = &kTx;
  event.envelope = R"({"id":"42"})";
  return event;
}

LogEvent gap() {
  LogEvent event;
  event.seq = 42;
  event.type = kGapType;
  event.subject = "log";
  return event;
}

TEST(nats_message, has_the_domain_and_the_type_in_its_subject) {
  const auto message = to_nats_message(confirmed(), "fencepost");
  EXPECT_EQ(message.subject, "fencepost.tx.TxConfirmed");
  EXPECT_EQ(message.body, R"({"id":"42"})");
  EXPECT_EQ(message.seq, 42);
  EXPECT_EQ(to_nats_message(gap(), "a.b").subject, "a.b.log.EventsGap");
}

TEST(nats_message, an_event_of_no_domain_has_its_subjects_prefix) {
  auto event = confirmed();
  event.domain = nullptr;
  event.subject = "other/1";
  EXPECT_EQ(to_nats_message(event, "fencepost").subject, "fencepost.other.TxConfirmed");
}

TEST(nats_message, no_name_can_change_the_form_of_the_subject) {
  auto event = confirmed();
  event.domain = nullptr;
  event.subject = "a.b >/1";
  event.type = "*.\r\nX";
  EXPECT_EQ(to_nats_message(event, "fencepost").subject, "fencepost.a_b__.____X");
  event.subject = "";
  event.type = "";
  EXPECT_EQ(to_nats_message(event, "fencepost").subject, "fencepost._._");
}

TEST(nats_message, ids_differ_for_the_same_seq_at_another_time) {
  auto other = confirmed();
  EXPECT_EQ(nats_message_id(confirmed()), nats_message_id(other));
  EXPECT_EQ(nats_message_id(confirmed()), "fencepost-42-1700000000123456");
  other.at += 1us;
  EXPECT_NE(nats_message_id(confirmed()), nats_message_id(other));
}

TEST(nats_message, a_gap_that_is_reported_twice_is_one_message) {
  auto later = gap();
  later.at += 1s;
  EXPECT_EQ(nats_message_id(gap()), nats_message_id(later));
  EXPECT_NE(nats_message_id(gap()), nats_message_id(confirmed()));
}

TEST(nats_message, the_seq_can_be_read_from_an_id_of_ours_only) {
  EXPECT_EQ(seq_in_message_id(nats_message_id(confirmed())), 42);
  EXPECT_EQ(seq_in_message_id(nats_message_id(gap())), 42);
  for (const auto* id :
       {"", "fencepost-", "fencepost-x-1", "fencepost-42", "other-42-1", "fencepost-99999999999999999999-1"})
    EXPECT_EQ(seq_in_message_id(id), std::nullopt) << id;
}

TEST(nats_subject, a_pattern_covers_what_it_matches) {
  struct Case {
    const char* pattern;
    const char* subject;
    bool covers;
  };
  for (const auto& [pattern, subject, covers] : {
           Case{"fencepost.>", "fencepost.>", true},
           Case{">", "fencepost.>", true},
           Case{"*.>", "fencepost.>", true},
           Case{"fencepost.*.>", "fencepost.>", false},
           Case{"fencepost.*.*", "fencepost.>", false},
           Case{"fencepost.*.*", "fencepost.tx.TxConfirmed", true},
           Case{"fencepost", "fencepost.>", false},
           Case{"fencepost.tx.>", "fencepost.>", false},
           Case{"other.>", "fencepost.>", false},
           Case{"a.>", "a.b.>", true},
           Case{"a.b.>", "a.>", false},
           Case{"a.b", "a.b.c", false},
           Case{"a.b.c", "a.b", false},
           Case{"*", ">", false},
       })
    EXPECT_EQ(subject_covers(pattern, subject), covers) << pattern << " and " << subject;
}

TEST(nats_ack, is_a_sequence_or_a_refusal) {
  const auto stored = parse_nats_ack(R"({"stream":"FENCEPOST","seq":7})");
  ASSERT_TRUE(stored.has_value());
  EXPECT_EQ(stored->sequence, 7U);
  EXPECT_FALSE(stored->duplicate);
  const auto repeated = parse_nats_ack(R"({"stream":"FENCEPOST","seq":7,"duplicate":true})");
  ASSERT_TRUE(repeated.has_value());
  EXPECT_TRUE(repeated->duplicate);

  const auto refused =
      parse_nats_ack(R"({"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"}})");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, 10071);
  EXPECT_TRUE(refused.error().out_of_step());
  EXPECT_EQ(refused.error().text, "wrong last sequence: 3");
  const auto full = parse_nats_ack(R"({"error":{"code":503,"err_code":10023}})");
  ASSERT_FALSE(full.has_value());
  EXPECT_FALSE(full.error().out_of_step());
}

TEST(nats_ack, an_answer_in_another_form_is_a_refusal) {
  for (const auto* text : {"", "+OK", "[]", "{}", R"({"seq":0})", R"({"seq":"7"})", R"({"seq":-1})"})
    EXPECT_FALSE(parse_nats_ack(text).has_value()) << text;
}

}  // namespace
}  // namespace fencepost::outbox
