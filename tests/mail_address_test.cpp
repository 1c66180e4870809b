// Mail addresses of people, against a real node: codes that verify them, limits, and what other people must not see.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "tests/support/mail_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

class MailAddresses : public MailTest {
 protected:
  // The only element of the person's list.
  static json::value only(const Person& person) {
    const auto list = person.get("/api/v1/me/emails").json();
    const auto& items = list.at("items").as_array();
    return items.size() == 1 ? items.front() : json::value(items);
  }
  static Answer add_again(const Person& person, const std::string& email) {
    return person.post("/api/v1/me/emails", {{"email", email}});
  }
  static Answer send_code(const Person& person, const std::string& id) {
    return person.call("POST", "/api/v1/me/emails/" + id + "/code", "");
  }
  // Another number than the code.
  static std::string wrong(const std::string& code) { return code == "000000" ? "000001" : "000000"; }
  // As if so much time had passed since every code.
  void age_codes(const std::string& interval) const {
    cluster_->sql(fmt::format("UPDATE email_code_request SET at = at - interval '{}'", interval));
  }
};

TEST_F(MailAddresses, are_verified_by_the_code_that_was_mailed) {
  start_mail();
  const auto alice = person(0);
  const auto added = alice.post("/api/v1/me/emails", {{"email", "Alice@EXAMPLE.org"}, {"remark", "mine"}});
  ASSERT_EQ(added.status, 201U) << added.body;
  EXPECT_EQ(added.json().at("email").as_string(), "Alice@example.org") << "the domain has no case";
  const std::string id(added.json().at("id").as_string());
  EXPECT_EQ(only(alice).at("isVerified"), false);
  EXPECT_TRUE(only(alice).at("lastVerifiedAt").is_null());

  const auto code = box_.code("Alice@example.org");
  ASSERT_EQ(code.size(), 6U);
  EXPECT_EQ(verify(alice, id, wrong(code)).code(), "wrong_code");
  EXPECT_EQ(verify(alice, id, wrong(code)).status, 422U);
  const auto verified = verify(alice, id, code);
  ASSERT_EQ(verified.status, 200U) << verified.body;
  EXPECT_EQ(verified.json().at("isVerified"), true);
  EXPECT_EQ(verified.json().at("isDeliverable"), true);
  EXPECT_FALSE(verified.json().at("lastVerifiedAt").is_null());
  EXPECT_EQ(only(alice), verified.json());
  EXPECT_EQ(verify(alice, id, code).code(), "code_expired") << "a code works once";
  EXPECT_EQ(send_code(alice, id).code(), "already_verified");
  // Nothing from which the code could be guessed is left.
  EXPECT_EQ(cluster_->sql("SELECT concat_ws(' ', send_status, salt IS NULL, is_used, octet_length(code_hash)) FROM "
                          "email_verification_codes"),
            "success t t 32");
}

TEST_F(MailAddresses, a_repeated_request_returns_the_existing_one_and_sends_nothing) {
  start_mail();
  const auto alice = person(0);
  const auto first = add_again(alice, "a@example.org");
  const auto second = alice.post("/api/v1/me/emails", {{"email", "a@EXAMPLE.ORG"}, {"remark", "another"}});
  EXPECT_EQ(first.status, 201U);
  EXPECT_EQ(second.status, 200U) << second.body;
  EXPECT_EQ(second.json(), first.json());
  ASSERT_EQ(box_.code("a@example.org").size(), 6U);
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM email_verification_codes"), "1");
}

TEST_F(MailAddresses, a_code_can_be_tried_five_times) {
  start_mail();
  const auto alice = person(0);
  const auto id = add(alice, "a@example.org");
  const auto code = box_.code("a@example.org");
  std::vector<Ask> guesses;
  for (int i = 0; i < 20; ++i) {
    guesses.push_back({.method = "POST",
                       .url = cluster_->node(0).url("/api/v1/me/emails/" + id + "/verify"),
                       .key = "",
                       .body = json::serialize(json::object{{"code", wrong(code)}}),
                       .headers = alice.headers()});
  }
  std::map<std::string, int> codes;
  for (const auto& guess : guesses) ++codes[ask(guess).code()];
  EXPECT_EQ(codes, (std::map<std::string, int>{{"wrong_code", 5}, {"code_expired", 15}}));
  EXPECT_EQ(verify(alice, id, code).code(), "code_expired") << "the right code comes too late";
  EXPECT_EQ(only(alice).at("isVerified"), false);
}

// Each try is counted before the code is compared, so that guesses at the same time cannot share one.
TEST_F(MailAddresses, guesses_at_the_same_time_count_as_well) {
  start_mail();
  const auto alice = person(0);
  const auto id = add(alice, "a@example.org");
  const auto code = box_.code("a@example.org");
  std::vector<std::thread> threads;
  std::atomic<int> wrong_codes = 0;
  threads.reserve(16);
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] { wrong_codes += verify(alice, id, wrong(code)).code() == "wrong_code" ? 1 : 0; });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong_codes, 5);
}

TEST_F(MailAddresses, only_the_newest_code_counts_and_it_expires) {
  start_mail({"code_resend_interval: 0ms"});
  const auto alice = person(0);
  const auto id = add(alice, "a@example.org");
  const auto first = box_.code("a@example.org");
  ASSERT_EQ(send_code(alice, id).status, 202U);
  const auto second = box_.code("a@example.org", 2);
  if (first != second) {
    EXPECT_EQ(verify(alice, id, first).code(), "wrong_code");
  }
  cluster_->sql("UPDATE email_verification_codes SET expires_at = clock_timestamp()");
  EXPECT_EQ(verify(alice, id, second).code(), "code_expired");
  ASSERT_EQ(send_code(alice, id).status, 202U);
  EXPECT_EQ(verify(alice, id, box_.code("a@example.org", 3)).status, 200U);
}

TEST_F(MailAddresses, codes_are_limited_by_time_by_address_and_by_person) {
  start_mail({"codes_per_address_per_day: 3", "codes_per_user_per_day: 5"});
  const auto alice = person(0), bob = person(1);
  const auto id = add(alice, "a@example.org");
  const auto soon = send_code(alice, id);
  EXPECT_EQ(soon.code(), "code_too_soon");
  EXPECT_EQ(soon.status, 429U);
  EXPECT_TRUE(std::ranges::any_of(soon.headers, [](const auto& h) { return h.first == "Retry-After"; }));
  // Removing the address does not reset anything.
  ASSERT_EQ(alice.remove("/api/v1/me/emails/" + id).status, 204U);
  EXPECT_EQ(add_again(alice, "a@example.org").code(), "code_too_soon");
  for (int i = 0; i < 2; ++i) {
    age_codes("61 seconds");
    const auto again =
        i == 0 ? add_again(alice, "a@example.org") : send_code(alice, std::string(only(alice).at("id").as_string()));
    ASSERT_LT(again.status, 300U) << again.body;
  }
  age_codes("61 seconds");
  EXPECT_EQ(send_code(alice, std::string(only(alice).at("id").as_string())).code(), "too_many_codes");
  // Another person is not told that the address has had its codes: the answer is as always, and no mail is sent.
  ASSERT_EQ(add_again(bob, "a@example.org").status, 201U);
  EXPECT_EQ(cluster_->sql("SELECT send_status FROM email_verification_codes ORDER BY id DESC LIMIT 1"), "suppressed");
  EXPECT_EQ(add_again(alice, "b@example.org").status, 201U);
  EXPECT_EQ(add_again(alice, "c@example.org").status, 201U);
  EXPECT_EQ(add_again(alice, "d@example.org").code(), "too_many_codes") << "five of this person";
  age_codes("1 day");
  EXPECT_EQ(add_again(alice, "d@example.org").status, 201U);
}

TEST_F(MailAddresses, people_who_share_one_do_not_see_each_other) {
  start_mail();
  const auto alice = person(0), bob = person(1);
  const auto of_alice = add_verified(alice, "shared@example.org", "alice's own words");
  const auto answer = bob.post("/api/v1/me/emails", {{"email", "shared@example.org"}});
  ASSERT_EQ(answer.status, 201U) << "as for an address that is not known";
  EXPECT_EQ(answer.json().at("isVerified"), false) << "what Alice verified does not count for Bob";
  EXPECT_TRUE(answer.json().at("remark").is_null());
  const std::string of_bob(answer.json().at("id").as_string());

  for (const auto& [method, path, body] :
       std::vector<std::tuple<std::string, std::string, std::string>>{{"PATCH", "", R"({"remark": "x"})"},
                                                                      {"DELETE", "", ""},
                                                                      {"POST", "/code", ""},
                                                                      {"POST", "/verify", R"({"code": "123456"})"}}) {
    const auto refused = bob.call(method, "/api/v1/me/emails/" + of_alice + path, body);
    EXPECT_EQ(refused.status, 404U) << method << path;
    EXPECT_EQ(refused.code(), "no_such_email");
  }
  EXPECT_EQ(subscribe(bob, of_alice, recipient(1), "compound", {"ready"}).code(), "no_such_email");
  // Bob's wrong guesses are Bob's.
  EXPECT_EQ(verify(bob, of_bob, wrong(box_.code("shared@example.org", 2))).code(), "wrong_code");
  ASSERT_EQ(bob.patch("/api/v1/me/emails/" + of_bob, {{"remark", "bob's"}}).status, 200U);
  EXPECT_EQ(only(alice).at("remark").as_string(), "alice's own words");
  ASSERT_EQ(bob.remove("/api/v1/me/emails/" + of_bob).status, 204U);
  EXPECT_EQ(only(alice).at("isVerified"), true);
  EXPECT_EQ(bob.get("/api/v1/me/emails").json().at("items").as_array().size(), 0U);
}

TEST_F(MailAddresses, what_is_not_an_address_is_refused) {
  start_mail();
  const auto alice = person(0);
  for (const std::string email : {"", "a", "@example.org", "a@", "a b@example.org", "a@example", "a@b@example.org",
                                  "a@example.org\r\nBcc: x@y.org", "a\n@example.org", "\"a\"@example.org",
                                  "A <a@example.org>", "a@[127.0.0.1]", "a,b@example.org", "ä@example.org"}) {
    const auto answer = add_again(alice, email);
    EXPECT_EQ(answer.status, 400U) << email << answer.body;
    EXPECT_EQ(answer.code(), "bad_email") << email;
  }
  EXPECT_EQ(add_again(alice, std::string(300, 'x') + "@example.org").status, 400U);
  EXPECT_EQ(alice.post("/api/v1/me/emails", {{"email", "a@example.org"}, {"more", 1}}).code(), "bad_request");
  EXPECT_EQ(alice.post("/api/v1/me/emails", {}).code(), "bad_request");
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM emails"), "0");
  const auto idn = add_again(alice, "a@bücher.example");
  ASSERT_EQ(idn.status, 201U) << idn.body;
  EXPECT_EQ(idn.json().at("email").as_string(), "a@xn--bcher-kva.example");
  EXPECT_EQ(add_again(alice, "a@xn--bcher-kva.example").status, 200U) << "the same address";
}

TEST_F(MailAddresses, belong_to_people_and_not_to_api_keys_or_other_sites) {
  start_mail();
  const auto alice = person(0);
  const auto with_key = cluster_->get(0, "/api/v1/me/emails");
  EXPECT_EQ(with_key.code(), "wallet_login_required");
  EXPECT_EQ(ask({.url = cluster_->node(0).url("/api/v1/me/emails"), .key = "", .body = ""}).status, 401U);
  // A page of another site has the cookie, and another origin.
  auto headers = alice.headers();
  for (auto& [name, value] : headers) {
    if (name == "Origin") value = "https://evil.example";
  }
  const auto stolen = ask({.method = "POST",
                           .url = cluster_->node(0).url("/api/v1/me/emails"),
                           .key = "",
                           .body = R"({"email": "evil@example.org"})",
                           .headers = headers});
  EXPECT_EQ(stolen.code(), "wrong_origin");
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM emails"), "0");
}

TEST_F(MailAddresses, the_language_is_the_persons_choice) {
  start_mail();
  const auto alice = person(0);
  EXPECT_EQ(alice.get("/api/v1/me").json(), (json::object{{"address", alice.wallet()}, {"language", "en"}}));
  EXPECT_EQ(alice.patch("/api/v1/me", {{"language", "fr"}}).status, 400U);
  ASSERT_EQ(alice.patch("/api/v1/me", {{"language", "zh"}}).json().at("language").as_string(), "zh");
  add(alice, "a@example.org");
  ASSERT_EQ(box_.code("a@example.org").size(), 6U);
  EXPECT_TRUE(box_.mails().front().text.contains("验证码")) << box_.mails().front().text;
}

TEST_F(MailAddresses, a_node_without_mail_says_so_and_still_shows_addresses) {
  start(0, 1, {});
  const auto alice = person(0);
  const auto answer = add_again(alice, "a@example.org");
  EXPECT_EQ(answer.status, 503U);
  EXPECT_EQ(answer.code(), "mail_not_configured");
  EXPECT_EQ(alice.get("/api/v1/me/emails").status, 200U);
  EXPECT_EQ(alice.get("/api/v1/me/subscriptions").status, 200U);
}

}  // namespace
}  // namespace fencepost::test
