// Mails about flows, end to end: real timelocks on a real chain, people who subscribe, and the mails that they get.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "evm/keys/private_key.hpp"
#include "tests/support/mail_fixture.hpp"

namespace fencepost::test {
namespace {

namespace json = boost::json;

constexpr std::int64_t kDay = CompoundTimelock::kDay;
const std::vector<std::string> kAll{"waiting", "ready", "executed", "cancelled", "expired"};
const std::vector<std::string> kAllOpenZeppelin{"waiting", "ready", "executed", "cancelled"};

class MailFlows : public MailTest {
 protected:
  static std::string id_of(const Answer& answer) { return std::string(answer.json().at("id").as_string()); }
  // Flow mails only.
  std::vector<notify::ReadMail> mails_to(const std::string& email) const {
    auto out = box_.to(email);
    std::erase_if(out, [](const auto& mail) { return !mail.message_id.starts_with("flow-"); });
    return out;
  }
};

// The acceptance of the design: from the queue to the execution, each verified address of the initiator gets each
// change once, and no other address gets any.
TEST_F(MailFlows, every_change_is_mailed_once_to_each_verified_address_of_the_initiator) {
  start_mail();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address(), {{"remark", "Treasury"}});
  const auto alice = person(0), bob = person(1), carol = person(2);
  const auto first = add_verified(alice, "alice@example.org", "my laptop");
  const auto shared = add_verified(alice, "team@example.org", "secret of alice");
  const auto silent = add(alice, "unverified@example.org");
  const auto executed_only = add_verified(alice, "executed@example.org");
  const auto of_bob = add_verified(bob, "team@example.org", "secret of bob", 2);
  const auto of_bob_alone = add_verified(bob, "bob@example.org");
  const auto of_carol = add_verified(carol, "carol@example.org");
  for (const auto& [who, email, notify_on, scope] :
       std::vector<std::tuple<const Person*, std::string, std::vector<std::string>, std::string>>{
           {&alice, first, kAll, "initiator"},
           {&alice, shared, kAll, "initiator"},
           {&alice, silent, kAll, "initiator"},
           {&alice, executed_only, {"executed"}, "initiator"},
           {&bob, of_bob, kAll, "all"},
           {&bob, of_bob_alone, kAll, "initiator"},
           {&carol, of_carol, {"ready"}, "all"}}) {
    const auto answer = subscribe(*who, email, timelock.address(), "compound", notify_on, {{"scope", scope}});
    ASSERT_EQ(answer.status, 201U) << answer.body;
  }

  const TimelockCall call{recipient(1), 0, to_hex0x(encode({word(recipient(2)), word(5)}))};
  const auto eta = chain_->now() + 3 * kDay;
  timelock.queue(call, "transfer(address,uint256)", eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting")) << describe();
  chain_->set_time(eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting ready")) << describe();
  timelock.execute(call, "transfer(address,uint256)", eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting ready executed")) << describe();
  ASSERT_TRUE(settled()) << describe();
  EXPECT_EQ(told("team@example.org"), "waiting ready executed") << "two people, one mail each time";
  EXPECT_EQ(told("executed@example.org"), "executed");
  EXPECT_EQ(told("carol@example.org"), "ready") << "every flow of the contract, one status";
  EXPECT_EQ(told("bob@example.org"), "") << "not the initiator";
  EXPECT_EQ(told("unverified@example.org"), "");
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM email_send_logs"), "8");

  const auto mails = mails_to("alice@example.org");
  ASSERT_EQ(mails.size(), 3U);
  for (const auto& mail : mails) {
    for (const auto& part : {mail.text, mail.html}) {
      EXPECT_TRUE(part.contains("Treasury")) << part;
      EXPECT_TRUE(part.contains(timelock.address())) << part;
      EXPECT_TRUE(part.contains("anvil")) << "the chain\n" << part;
      EXPECT_TRUE(part.contains("transfer(address,uint256)")) << part;
      EXPECT_TRUE(part.contains(recipient(2))) << part;
      EXPECT_TRUE(part.contains("my laptop")) << "the person's own remark\n" << part;
      EXPECT_TRUE(part.contains("UTC")) << part;
    }
    EXPECT_FALSE(mail.unsubscribe_url.empty());
  }
  for (const auto& mail : mails_to("team@example.org")) {
    EXPECT_FALSE(mail.text.contains("secret of")) << "no remark leaks to the other person\n" << mail.text;
    EXPECT_FALSE(mail.html.contains("secret of"));
  }
}

TEST_F(MailFlows, a_batch_is_one_mail_and_an_id_that_is_scheduled_again_is_mailed_again) {
  start_mail();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto alice = person(0);
  const auto email = add_verified(alice, "alice@example.org");
  ASSERT_EQ(subscribe(alice, email, timelock.address(), "openzeppelin", kAllOpenZeppelin).status, 201U);
  const std::vector<TimelockCall> calls{{recipient(1)}, {recipient(2)}, {recipient(3)}};
  timelock.schedule_batch(calls, salt(1), 200);
  timelock.cancel(OpenZeppelinTimelock::batch_id(calls, salt(1)));
  timelock.schedule_batch(calls, salt(1), 200);
  ASSERT_TRUE(is_told("alice@example.org", "waiting cancelled waiting")) << describe();
  ASSERT_TRUE(settled());
  EXPECT_EQ(told("alice@example.org"), "waiting cancelled waiting");
}

TEST_F(MailFlows, what_happened_before_a_subscription_or_during_a_pause_is_not_mailed) {
  start_mail();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  const auto email = add_verified(alice, "alice@example.org");
  const auto eta = chain_->now() + 3 * kDay;
  const TimelockCall early{recipient(1)}, paused{recipient(2)}, late{recipient(3)};
  timelock.queue(early, "", eta);
  ASSERT_TRUE(becomes(CompoundTimelock::id(early, "", eta), "waiting")) << describe();
  const auto subscription = subscribe(alice, email, timelock.address(), "compound", kAll);
  ASSERT_EQ(subscription.status, 201U) << subscription.body;
  const auto path = "/api/v1/me/subscriptions/" + id_of(subscription);

  ASSERT_EQ(alice.patch(path, {{"isActive", false}}).status, 200U);
  timelock.queue(paused, "", eta);
  ASSERT_TRUE(becomes(CompoundTimelock::id(paused, "", eta), "waiting")) << describe();
  ASSERT_TRUE(settled());
  ASSERT_EQ(alice.patch(path, {{"isActive", true}}).json().at("isActive"), true);
  timelock.queue(late, "", eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting")) << describe();
  // The clock makes all three ready, after the subscription.
  chain_->set_time(eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting ready ready ready")) << describe();
}

// A contract that is imported again brings its whole history; no address gets a mail about it.
TEST_F(MailFlows, an_import_of_history_mails_nothing) {
  start_mail();
  const CompoundTimelock timelock(*chain_, signer(0));
  const auto eta = chain_->now() + 3 * kDay;
  const TimelockCall call{recipient(1)};
  import(timelock.address());
  const auto alice = person(0);
  const auto email = add_verified(alice, "alice@example.org");
  timelock.queue(call, "", eta);
  ASSERT_TRUE(becomes(CompoundTimelock::id(call, "", eta), "waiting"));
  ASSERT_EQ(subscribe(alice, email, timelock.address(), "compound", kAll).status, 201U);
  const auto target = fmt::format("/api/v1/timelocks/31337/{}", timelock.address());
  ASSERT_EQ(ask({.method = "DELETE", .url = cluster_->node(0).url(target), .key = cluster_->key(), .body = ""}).status,
            204U);
  import(timelock.address());
  ASSERT_TRUE(becomes(CompoundTimelock::id(call, "", eta), "waiting>waiting")) << describe();
  ASSERT_TRUE(settled());
  EXPECT_EQ(told("alice@example.org"), "");
}

TEST_F(MailFlows, filters_choose_flows_by_target_and_function) {
  start_mail();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address());
  const auto alice = person(0);
  const auto subscribed = [&](const std::string& address, json::object filters) {
    const auto answer = subscribe(alice, add_verified(alice, address), timelock.address(), "compound", {"waiting"},
                                  {{"notifyFilters", std::move(filters)}});
    EXPECT_EQ(answer.status, 201U) << answer.body;
  };
  subscribed("target@example.org", {{"targets", json::array{recipient(1)}}});
  subscribed("function@example.org", {{"functions", json::array{"pause()"}}});
  subscribed("selector@example.org", {{"functions", json::array{"0x8456cb59"}}});  // pause()
  subscribed("both@example.org", {{"targets", json::array{recipient(2)}}, {"functions", json::array{"pause()"}}});
  const auto eta = chain_->now() + 3 * kDay;
  timelock.queue({recipient(1)}, "unpause()", eta);
  timelock.queue({recipient(3)}, "pause()", eta);
  timelock.queue({recipient(2), 0, call_data("pause()")}, "", eta);
  ASSERT_TRUE(is_told("both@example.org", "waiting")) << describe();
  ASSERT_TRUE(settled());
  EXPECT_EQ(told("target@example.org"), "waiting");
  EXPECT_EQ(told("function@example.org"), "waiting waiting");
  EXPECT_EQ(told("selector@example.org"), "waiting waiting");
}

TEST_F(MailFlows, a_link_unsubscribes_the_address_from_the_contract) {
  start_mail();
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100), other(*chain_, signer(0), 100);
  import(timelock.address());
  import(other.address());
  const auto alice = person(0), bob = person(1);
  const auto of_alice = add_verified(alice, "team@example.org");
  const auto of_bob = add_verified(bob, "team@example.org", "", 2);
  ASSERT_EQ(subscribe(alice, of_alice, timelock.address(), "openzeppelin", kAllOpenZeppelin).status, 201U);
  ASSERT_EQ(subscribe(alice, of_alice, other.address(), "openzeppelin", kAllOpenZeppelin).status, 201U);
  ASSERT_EQ(subscribe(bob, of_bob, timelock.address(), "openzeppelin", kAllOpenZeppelin, {{"scope", "all"}}).status,
            201U);
  timelock.schedule({recipient(1)}, salt(1), 1000);
  ASSERT_TRUE(is_told("team@example.org", "waiting")) << describe();
  const auto url = mails_to("team@example.org").at(0).unsubscribe_url;
  ASSERT_TRUE(url.starts_with(cluster_->node(0).url("/unsubscribe/"))) << url;

  // A program that scans mails follows the link: nothing changes.
  const auto page = ask({.url = url, .key = "", .body = ""});
  EXPECT_EQ(page.status, 200U) << page.body;
  EXPECT_TRUE(page.body.contains("team@example.org")) << page.body;
  EXPECT_EQ(cluster_->sql("SELECT count(*) FROM user_email_subscriptions WHERE is_active"), "3");
  // The button and a mail program's one click send the same; neither has a cookie or our origin.
  const auto click = [&](const std::string& target) {
    return ask(
        {.method = "POST",
         .url = target,
         .key = "",
         .body = "List-Unsubscribe=One-Click",
         .headers = {{"Content-Type", "application/x-www-form-urlencoded"}, {"Origin", "https://mail.example"}}});
  };
  EXPECT_EQ(click(url + "x").status, 404U);
  auto forged = url;
  forged.back() = forged.back() == '0' ? '1' : '0';
  EXPECT_EQ(click(forged).status, 404U);
  EXPECT_EQ(click(url).status, 200U);
  EXPECT_EQ(click(url).status, 200U) << "again";
  EXPECT_EQ(cluster_->sql("SELECT string_agg(contract_address, ',') FROM user_email_subscriptions WHERE is_active"),
            other.address())
      << "of both people, and only of this contract";
  timelock.schedule({recipient(1)}, salt(2), 1000);
  other.schedule({recipient(1)}, salt(2), 1000);
  ASSERT_TRUE(is_told("team@example.org", "waiting waiting")) << describe();
  ASSERT_TRUE(settled());
  EXPECT_EQ(told("team@example.org"), "waiting waiting");
  EXPECT_FALSE(cluster_->node(0).output().contains(url.substr(url.rfind('/') + 1))) << "the token is not in the log";
}

TEST_F(MailFlows, a_change_that_a_reorg_undoes_is_corrected_once) {
  start_mail({}, 1, 1);
  const OpenZeppelinTimelock timelock(*chain_, signer(0), 100);
  import(timelock.address());
  const auto alice = person(0);
  ASSERT_EQ(
      subscribe(alice, add_verified(alice, "alice@example.org"), timelock.address(), "openzeppelin", kAllOpenZeppelin)
          .status,
      201U);
  timelock.schedule({recipient(1)}, salt(1), 1000);
  cluster_->mine(2);
  ASSERT_TRUE(is_told("alice@example.org", "waiting")) << describe();
  cluster_->reorg(3);
  cluster_->mine(1);
  ASSERT_TRUE(is_told("alice@example.org", "waiting -waiting")) << describe();
  // Queued again, it is told again.
  timelock.schedule({recipient(1)}, salt(1), 1000);
  cluster_->mine(2);
  ASSERT_TRUE(is_told("alice@example.org", "waiting -waiting waiting")) << describe();
  ASSERT_TRUE(settled());
  EXPECT_EQ(mails_to("alice@example.org").size(), 3U);
}

TEST_F(MailFlows, subscriptions_are_checked) {
  start_mail();
  const CompoundTimelock compound(*chain_, signer(0));
  const OpenZeppelinTimelock zeppelin(*chain_, signer(0), 100);
  import(compound.address());
  import(zeppelin.address());
  const auto alice = person(0), bob = person(1);
  const auto email = add(alice, "alice@example.org");
  const auto post = [&](const json::object& change, const Person* who = nullptr) {
    json::object body{{"emailId", email},
                      {"standard", "compound"},
                      {"chainId", 31337},
                      {"contractAddress", compound.address()},
                      {"notifyOn", json::array{"ready"}}};
    for (const auto& [name, value] : change) {
      if (value.is_null()) {
        body.erase(name);
      } else {
        body[name] = value;
      }
    }
    return (who == nullptr ? alice : *who).post("/api/v1/me/subscriptions", body);
  };
  const auto unknown = post({{"contractAddress", recipient(7)}});
  EXPECT_EQ(unknown.status, 404U);
  EXPECT_EQ(unknown.code(), "timelock_unknown");
  EXPECT_TRUE(unknown.body.contains("POST /api/v1/timelocks")) << unknown.body;
  EXPECT_TRUE(unknown.body.contains(recipient(7))) << unknown.body;
  EXPECT_EQ(post({{"chainId", 1}}).code(), "timelock_unknown");
  EXPECT_EQ(post({{"standard", "openzeppelin"}}).code(), "wrong_standard");
  EXPECT_EQ(
      post({{"standard", "openzeppelin"}, {"contractAddress", zeppelin.address()}, {"notifyOn", {"expired"}}}).code(),
      "bad_request");
  EXPECT_EQ(post({}, &bob).code(), "no_such_email");
  for (const json::object& change :
       std::vector<json::object>{{{"notifyOn", nullptr}},
                                 {{"notifyOn", json::array()}},
                                 {{"notifyOn", json::array{"proposed"}}},
                                 {{"notifyOn", json::array{"ready", "ready"}}},
                                 {{"scope", "everyone"}},
                                 {{"standard", "other"}},
                                 {{"emailId", "x"}},
                                 {{"more", 1}},
                                 {{"notifyFilters", json::object{{"targets", json::array{"0x12"}}}}},
                                 {{"notifyFilters", json::object{{"functions", json::array{"not a function"}}}}},
                                 {{"contractAddress", "0x12"}}}) {
    EXPECT_EQ(post(change).status, 400U) << json::serialize(change);
  }
  const auto added = post({});
  ASSERT_EQ(added.status, 201U) << added.body;
  EXPECT_EQ(added.json().at("isVerified"), false) << "stored, and without effect until the address is verified";
  const auto again = post({{"notifyOn", json::array{"waiting"}}});
  EXPECT_EQ(again.status, 200U);
  EXPECT_EQ(again.json(), added.json()) << "unchanged";

  const auto path = "/api/v1/me/subscriptions/" + id_of(added);
  const auto filters = json::object{{"functions", json::array{"pause()"}}};
  const auto changed =
      alice.patch(path, {{"notifyOn", json::array{"expired", "ready"}}, {"scope", "all"}, {"notifyFilters", filters}});
  ASSERT_EQ(changed.status, 200U) << changed.body;
  EXPECT_EQ(changed.json().at("notifyFilters"), json::value(filters));
  EXPECT_EQ(changed.json().at("scope").as_string(), "all");
  EXPECT_TRUE(alice.patch(path, {{"notifyFilters", nullptr}}).json().at("notifyFilters").is_null());
  EXPECT_EQ(alice.get(path).json().at("notifyOn"), (json::value{"expired", "ready"}));
  for (const auto* method : {"GET", "DELETE"}) EXPECT_EQ(bob.call(method, path, "").code(), "no_such_subscription");
  EXPECT_EQ(bob.patch(path, {{"isActive", false}}).code(), "no_such_subscription");
  EXPECT_EQ(bob.get("/api/v1/me/subscriptions").json().at("items").as_array().size(), 0U);
  EXPECT_EQ(alice.get("/api/v1/me/subscriptions").json().at("items").as_array().size(), 1U);
  EXPECT_EQ(alice.remove(path).status, 204U);
  EXPECT_EQ(alice.get(path).code(), "no_such_subscription");
}

TEST_F(MailFlows, operators_are_mailed_about_stuck_transactions) {
  TxClusterOptions options;
  options.settings.stuck_after = std::chrono::milliseconds(300);
  options.settings.more = fmt::format(
      "email:\n  transport: file\n  directory: {}\n  from: fencepost@example.org\n  operators: [ops@example.org]\n",
      box_.directory().string());
  start(0, 1, std::move(options));
  const auto id = cluster_->create(0, transfer(signer(0), "never mined", 1));
  ASSERT_TRUE(eventually([&] { return box_.to("ops@example.org").size() == 1; })) << describe();
  const auto mail = box_.to("ops@example.org").front();
  EXPECT_TRUE(mail.subject.contains("TxStuck")) << mail.subject;
  EXPECT_TRUE(mail.text.contains(id)) << mail.text;
  EXPECT_TRUE(cluster_->sql_becomes("SELECT concat_ws(' ', email, event_type, send_status) FROM operator_email_logs",
                                    "ops@example.org TxStuck success"));
}

TEST_F(MailFlows, a_key_that_is_restricted_to_a_contract_reads_the_mails_about_it_only) {
  start_mail();
  const CompoundTimelock mine(*chain_, signer(0)), other(*chain_, signer(0));
  const auto alice = person(0);
  const auto email = add_verified(alice, "alice@example.org");
  for (const auto* timelock : {&mine, &other}) {
    import(timelock->address());
    ASSERT_EQ(subscribe(alice, email, timelock->address(), "compound", {"waiting"}).status, 201U);
    timelock->queue({recipient(1)}, "", chain_->now() + 3 * kDay);
  }
  ASSERT_TRUE(is_told("alice@example.org", "waiting waiting")) << describe();
  const auto made = fencepost({"apikey", "create", "--dsn", cluster_->dsn(), "--json", "--label", "one", "--scope",
                               "mail:read", "--contract", mine.address()});
  const auto key = std::string(json::parse(made.out).at("key").as_string());
  const auto get = [&](const std::string& query) {
    return ask({.url = cluster_->node(0).url("/api/v1/mails" + query), .key = key, .body = ""});
  };
  for (const auto& query : {std::string(), std::string("?status=success"), std::string("?email=alice@example.org"),
                            "?contract=" + mine.address()}) {
    const auto items = get(query).json().at("items").as_array();
    ASSERT_EQ(items.size(), 1U) << query;
    EXPECT_EQ(items[0].at("contractAddress").as_string(), mine.address()) << query;
  }
  const auto refused = get("?contract=" + other.address());
  EXPECT_EQ(refused.status, 403U);
  EXPECT_EQ(refused.code(), "contract_not_allowed");
}

TEST_F(MailFlows, operators_see_the_log_and_a_preview) {
  start_mail();
  const CompoundTimelock timelock(*chain_, signer(0));
  import(timelock.address(), {{"remark", "Treasury"}});
  const auto alice = person(0);
  ASSERT_EQ(
      subscribe(alice, add_verified(alice, "alice@example.org"), timelock.address(), "compound", {"waiting"}).status,
      201U);
  const TimelockCall call{recipient(1)};
  const auto eta = chain_->now() + 3 * kDay;
  timelock.queue(call, "pause()", eta);
  ASSERT_TRUE(is_told("alice@example.org", "waiting")) << describe();
  const auto list =
      cluster_->get(0, "/api/v1/mails?status=success&email=alice@example.org&contract=" + timelock.address());
  ASSERT_EQ(list.status, 200U) << list.body;
  ASSERT_EQ(list.json().at("items").as_array().size(), 1U) << list.body;
  EXPECT_EQ(list.json().at("items").at(0).at("statusTo").as_string(), "waiting");
  EXPECT_EQ(cluster_->get(0, "/api/v1/mails?status=dead").json().at("items").as_array().size(), 0U);
  EXPECT_EQ(alice.get("/api/v1/mails").status, 403U) << "not for people";

  const auto flow = CompoundTimelock::id(call, "pause()", eta);
  const auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "mail");
    return fencepost(std::move(arguments),
                     {"FENCEPOST_URL=" + cluster_->node(0).url(""), "FENCEPOST_API_KEY=" + cluster_->key()});
  };
  const auto preview = run({"preview", "--flow", flow, "--status", "ready", "--language", "zh"});
  EXPECT_EQ(preview.status.code, 0) << preview.err;
  EXPECT_TRUE(preview.out.starts_with("<!")) << preview.out;
  EXPECT_TRUE(preview.out.contains("Treasury"));
  EXPECT_TRUE(preview.out.contains("lang=\"zh"));
  EXPECT_TRUE(run({"preview", "--flow", flow, "--text"}).out.contains("pause()"));
  EXPECT_NE(run({"preview", "--flow", salt(9)}).status.code, 0);
  const auto log = run({"log"});
  EXPECT_TRUE(log.out.contains("alice@example.org")) << log.out << log.err;
  const auto listed = run({"list", "--dir", box_.directory().string()});
  EXPECT_TRUE(listed.out.contains("code-1")) << listed.out << listed.err;
  EXPECT_TRUE(listed.out.contains("flow-1")) << listed.out;
  const auto shown = run({"show", "flow-1", "--dir", box_.directory().string()});
  EXPECT_TRUE(shown.out.contains("Treasury")) << shown.out << shown.err;
  EXPECT_TRUE(run({"show", "--dir", box_.directory().string()}).out.contains("Treasury")) << "the newest";
  EXPECT_NE(run({"show", "flow-77", "--dir", box_.directory().string()}).status.code, 0);
}

TEST(mail_list, without_mails_is_an_empty_list_as_every_other_list) {
  const TempDir dir("mail_list");
  const auto before_the_first = (dir / "mail").string();
  for (const auto& directory : {before_the_first, dir.path().string()}) {
    const auto documents = fencepost({"mail", "list", "--json", "--dir", directory});
    EXPECT_EQ(documents.status.code, 0) << directory << documents.err;
    EXPECT_EQ(json::parse(documents.out), json::parse(R"({"items": [], "nextCursor": null})")) << directory;
    const auto words = fencepost({"mail", "list", "--dir", directory});
    EXPECT_EQ(words.status.code, 0) << directory << words.err;
    EXPECT_EQ(words.out, "no mails\n") << directory;
  }
  EXPECT_TRUE(fencepost({"mail", "list", "--dir", before_the_first}).err.contains(before_the_first))
      << "where it looked";
  EXPECT_EQ(fencepost({"mail", "show", "--dir", before_the_first}).status.code, 5);
}

}  // namespace
}  // namespace fencepost::test
