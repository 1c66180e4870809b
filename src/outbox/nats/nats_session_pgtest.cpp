// Sessions with a real nats-server. No database: the file is a pgtest because it starts a server.
#include <chrono>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/tls_test_support.hpp"
#include "outbox/nats/nats_session.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/nats_server.hpp"

namespace fencepost::outbox {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::NatsServer;
using testing::ElementsAre;
using testing::HasSubstr;

NatsOptions options_for(const NatsServer& server) {
  NatsOptions options;
  options.urls.emplace_back(server.url());
  options.timeout = 2s;
  return options;
}

NatsMessage message(std::int64_t seq, std::string body = "{}") {
  return {.seq = seq, .subject = "fencepost.tx.TxCreated", .id = fmt::format("fencepost-{}-7", seq), .body = body};
}

std::vector<NatsMessage> messages(std::int64_t from, std::int64_t to) {
  std::vector<NatsMessage> out;
  for (auto seq = from; seq <= to; ++seq) out.push_back(message(seq));
  return out;
}

std::unique_ptr<NatsSession> opened(const NatsOptions& options,
                                    std::shared_ptr<NatsAcks> acks = std::make_shared<NatsAcks>()) {
  auto session = NatsSession::open(options, std::move(acks));
  if (!session) throw std::runtime_error(session.error().text);
  return std::move(*session);
}

std::vector<std::int64_t> stored_in(const NatsServer& server) {
  std::vector<std::int64_t> out;
  for (const auto& each : server.messages("FENCEPOST")) out.push_back(seq_in_message_id(each.id).value_or(-1));
  return out;
}

std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> out;
  for (auto i = from; i <= to; ++i) out.push_back(i);
  return out;
}

TEST(nats_session, creates_a_missing_stream_and_leaves_an_existing_one_alone) {
  const NatsServer server;
  auto options = options_for(server);
  opened(options);
  EXPECT_THAT(server.subjects_of("FENCEPOST"), ElementsAre("fencepost.>"));
  server.add_stream("WIDE", {"other", "wide.>"});
  options.stream = "WIDE";
  options.subject_prefix = "wide.fencepost";
  options.max_age = 1h;
  opened(options);
  EXPECT_THAT(server.subjects_of("WIDE"), ElementsAre("other", "wide.>"));
}

TEST(nats_session, a_stream_whose_subjects_do_not_fit_is_reported_and_not_changed) {
  const NatsServer server;
  server.add_stream("FENCEPOST", {"orders.>"});
  const auto session = NatsSession::open(options_for(server), std::make_shared<NatsAcks>());
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().kind, NatsFailure::kStream);
  EXPECT_EQ(
      session.error().text,
      "stream FENCEPOST: exists with the subjects [orders.>], which do not cover fencepost.>; change the stream's "
      "subjects, or nats.stream or nats.subject_prefix");
  EXPECT_THAT(server.subjects_of("FENCEPOST"), ElementsAre("orders.>"));
}

TEST(nats_session, subjects_of_another_stream_are_reported) {
  const NatsServer server;
  server.add_stream("OTHER", {"fencepost.tx.>"});
  const auto session = NatsSession::open(options_for(server), std::make_shared<NatsAcks>());
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().kind, NatsFailure::kStream);
  EXPECT_THAT(session.error().text, HasSubstr("subjects overlap with an existing stream"));
}

TEST(nats_session, a_server_without_jetstream_is_reported) {
  const NatsServer server({.jetstream = false});
  const auto session = NatsSession::open(options_for(server), std::make_shared<NatsAcks>());
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().kind, NatsFailure::kStream);
  EXPECT_THAT(session.error().text, HasSubstr("JetStream"));
}

TEST(nats_session, a_server_that_is_down_is_unreachable_and_no_credential_is_shown) {
  NatsOptions options;
  options.urls.emplace_back("nats://me:geheim@127.0.0.1:1");
  options.urls.emplace_back("nats://me:geheim@[::bad");
  options.timeout = 500ms;
  const auto session = NatsSession::open(options, std::make_shared<NatsAcks>());
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().kind, NatsFailure::kUnreachable);
  EXPECT_THAT(session.error().text, Not(HasSubstr("geheim")));
}

TEST(nats_session, a_wrong_password_is_reported) {
  const NatsServer server({.config = "authorization { user: me, password: geheim }"});
  auto options = options_for(server);
  ASSERT_FALSE(NatsSession::open(options, std::make_shared<NatsAcks>()).has_value());
  options.urls = {Secret(fmt::format("nats://me:falsch@127.0.0.1:{}", server.port()))};
  const auto refused = NatsSession::open(options, std::make_shared<NatsAcks>());
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().text, HasSubstr("uthorization"));
  options.urls = {Secret(fmt::format("nats://me:geheim@127.0.0.1:{}", server.port()))};
  EXPECT_TRUE(NatsSession::open(options, std::make_shared<NatsAcks>()).has_value());
}

TEST(nats_session, checks_the_servers_certificate) {
  const http::testing::TestCertificate good("localhost");
  const http::testing::TestCertificate other("elsewhere.test");
  const auto open_with = [](const http::testing::TestCertificate& certificate, const std::string& ca) {
    const NatsServer server({.config = fmt::format("tls {{ cert_file: \"{}\", key_file: \"{}\" }}",
                                                   certificate.certificate_file(), certificate.key_file())});
    auto options = options_for(server);
    options.urls = {Secret(fmt::format("tls://localhost:{}", server.port()))};
    options.tls_ca_path = ca;
    return NatsSession::open(options, std::make_shared<NatsAcks>()).has_value();
  };
  EXPECT_TRUE(open_with(good, good.certificate_file()));
  EXPECT_FALSE(open_with(good, ""));                        // of an unknown authority
  EXPECT_FALSE(open_with(good, other.certificate_file()));  // of another authority
  EXPECT_FALSE(open_with(other, other.certificate_file())) << "a certificate for another host was accepted";
}

TEST(nats_session, messages_arrive_once_in_order_with_their_headers) {
  const NatsServer server;
  const auto session = opened(options_for(server));
  for (const auto& batch : {messages(1, 300), messages(301, 301), messages(302, 900)}) {
    const auto published = session->publish(batch);
    ASSERT_FALSE(published.problem.has_value()) << published.problem->text;
    EXPECT_EQ(published.stored, batch.size());
    EXPECT_EQ(published.repeats, 0U);
  }
  EXPECT_EQ(stored_in(server), numbers(1, 900));
  const auto first = server.messages("FENCEPOST").front();
  EXPECT_EQ(first.subject, "fencepost.tx.TxCreated");
  EXPECT_EQ(first.content_type, "application/cloudevents+json");
  EXPECT_EQ(first.id, "fencepost-1-7");
  EXPECT_EQ(first.body, "{}");
}

TEST(nats_session, messages_that_are_published_again_are_stored_once) {
  const NatsServer server;
  ASSERT_EQ(opened(options_for(server))->publish(messages(1, 50)).stored, 50U);
  const auto published = opened(options_for(server))->publish(messages(20, 60));
  EXPECT_FALSE(published.problem.has_value()) << published.problem->text;
  EXPECT_EQ(published.stored, 41U);
  EXPECT_EQ(published.repeats, 31U);
  EXPECT_EQ(stored_in(server), numbers(1, 60));
}

TEST(nats_session, messages_are_stored_once_also_after_the_duplicate_window) {
  const NatsServer server;
  server.add_stream("FENCEPOST", {"fencepost.>"}, {.duplicate_window = 100ms});  // the shortest that it takes
  ASSERT_EQ(opened(options_for(server))->publish(messages(1, 50)).stored, 50U);
  const auto stored = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return std::chrono::steady_clock::now() > stored + 300ms; }));  // the window has passed
  const auto session = opened(options_for(server));
  // Smaller batches than before: the end of the stream is beyond them.
  for (std::int64_t from = 11; from <= 71; from += 10) {
    const auto published = session->publish(messages(from, from + 9));
    ASSERT_FALSE(published.problem.has_value()) << published.problem->text;
    EXPECT_EQ(published.stored, 10U);
  }
  EXPECT_EQ(stored_in(server), numbers(1, 80));
}

TEST(nats_session, the_same_numbers_with_other_times_are_other_events) {
  const NatsServer server;
  ASSERT_EQ(opened(options_for(server))->publish(messages(1, 10)).stored, 10U);
  auto restored = messages(5, 8);
  for (auto& each : restored) each.id += "1";
  const auto published = opened(options_for(server))->publish(restored);
  EXPECT_EQ(published.stored, 4U);
  EXPECT_EQ(published.repeats, 0U);
  EXPECT_EQ(server.message_count("FENCEPOST"), 14U);
}

TEST(nats_session, a_second_publisher_cannot_come_between) {
  const NatsServer server;
  const auto old_owner = opened(options_for(server));
  ASSERT_EQ(old_owner->publish(messages(1, 10)).stored, 10U);
  const auto new_owner = opened(options_for(server));
  ASSERT_EQ(new_owner->publish(messages(11, 20)).stored, 10U);
  // The old owner does not know yet, and what it publishes is refused.
  const auto late = old_owner->publish(messages(11, 15));
  EXPECT_EQ(late.repeats, late.stored);
  EXPECT_EQ(stored_in(server), numbers(1, 20));
}

TEST(nats_session, a_message_of_another_program_costs_a_round_and_nothing_else) {
  const NatsServer server;
  const auto session = opened(options_for(server));
  ASSERT_EQ(session->publish(messages(1, 10)).stored, 10U);
  server.publish("fencepost.tx.TxCreated", "foreign");
  const auto refused = session->publish(messages(11, 20));
  EXPECT_EQ(refused.stored, 0U);
  EXPECT_TRUE(refused.again);
  const auto published = session->publish(messages(11, 20));
  EXPECT_EQ(published.stored, 10U);
  auto expected = numbers(1, 20);
  expected.insert(expected.begin() + 10, -1);
  EXPECT_EQ(stored_in(server), expected);
}

TEST(nats_session, nothing_is_stored_after_a_message_that_the_stream_refused) {
  const NatsServer server;
  server.add_stream("FENCEPOST", {"fencepost.>"}, {.max_message_bytes = 1000});
  auto batch = messages(1, 500);
  batch[10].body = std::string(2000, 'x');
  const auto session = opened(options_for(server));
  for (int i = 0; i < 2; ++i) {
    const auto published = session->publish(batch);
    EXPECT_EQ(published.stored, 10U);
    ASSERT_TRUE(published.problem.has_value());
    EXPECT_THAT(published.problem->text, HasSubstr("message size exceeds maximum allowed"));
    EXPECT_TRUE(session->usable());
  }
  // Those after it were on their way already.
  EXPECT_EQ(stored_in(server), numbers(1, 10));
  batch[10].body = "smaller";
  EXPECT_EQ(session->publish(batch).stored, 500U);
  EXPECT_EQ(stored_in(server), numbers(1, 500));
}

TEST(nats_session, a_message_over_the_servers_limit_is_named) {
  const NatsServer server({.config = "max_payload: 4096"});
  auto batch = messages(1, 20);
  batch[10].body = std::string(5000, 'x');
  const auto session = opened(options_for(server));
  const auto published = session->publish(batch);
  EXPECT_EQ(published.stored, 10U);
  ASSERT_TRUE(published.problem.has_value());
  EXPECT_EQ(published.problem->kind, NatsFailure::kRefused);
  EXPECT_EQ(published.problem->text,
            "event 11 has 5000 bytes, and the server takes at most 4096; raise the server's max_payload");
  EXPECT_EQ(stored_in(server), numbers(1, 10));
}

TEST(nats_session, a_silent_server_ends_the_session_in_time) {
  NatsServer server;
  auto options = options_for(server);
  options.timeout = 500ms;
  const auto session = opened(options);
  ASSERT_EQ(session->publish(messages(1, 5)).stored, 5U);
  server.suspend();
  const auto begin = std::chrono::steady_clock::now();
  const auto published = session->publish(messages(6, 10));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(published.stored, 0U);
  EXPECT_TRUE(published.problem.has_value());
  EXPECT_FALSE(session->usable());
  server.resume();
  // What the server stored meanwhile is not stored again.
  const auto again = opened(options_for(server))->publish(messages(6, 12));
  EXPECT_EQ(again.stored, 7U);
  EXPECT_EQ(stored_in(server), numbers(1, 12));
}

TEST(nats_session, a_killed_server_ends_the_session_at_once_and_loses_nothing) {
  NatsServer server;
  const auto session = opened(options_for(server));
  ASSERT_EQ(session->publish(messages(1, 500)).stored, 500U);
  server.kill();
  const auto published = session->publish(messages(501, 510));
  EXPECT_EQ(published.stored, 0U);
  ASSERT_TRUE(published.problem.has_value());
  EXPECT_EQ(published.problem->kind, NatsFailure::kUnreachable);
  server.restart();
  EXPECT_EQ(opened(options_for(server))->publish(messages(501, 510)).stored, 10U);
  EXPECT_EQ(stored_in(server), numbers(1, 510));
}

TEST(nats_session, an_interrupt_ends_the_wait) {
  NatsServer server;
  const auto acks = std::make_shared<NatsAcks>();
  auto options = options_for(server);
  options.timeout = 60s;
  const auto session = opened(options, acks);
  ASSERT_EQ(session->publish(messages(1, 5)).stored, 5U);
  server.suspend();
  std::thread stopper([&] { acks->interrupt(); });
  const auto published = session->publish(messages(6, 10));
  stopper.join();
  EXPECT_TRUE(published.problem.has_value());
  server.resume();
}

}  // namespace
}  // namespace fencepost::outbox
