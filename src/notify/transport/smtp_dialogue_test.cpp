#include "notify/transport/smtp_dialogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using enum SendResult;

// What was said up to a failure: "C: " a command, "S: " a reply, "B" a piece of the body, "E" its last piece.
SmtpDialogue dialogue(const std::vector<std::string_view>& lines) {
  SmtpDialogue out;
  for (const auto line : lines) {
    if (line.starts_with("C: ")) out.on_command(std::string(line.substr(3)) + "\r\n");
    if (line.starts_with("S: ")) out.on_reply(std::string(line.substr(3)) + "\r\n");
    if (line == "B" || line == "E") out.on_body(line == "E");
  }
  return out;
}

constexpr auto kMail = "C: MAIL FROM:<no-reply@example.org>";
constexpr auto kRcpt = "C: RCPT TO:<alice@example.org>";
constexpr auto kData = "C: DATA";
constexpr auto kOk = "S: 250 2.1.0 OK";
constexpr auto kGo = "S: 354 go on";
constexpr auto kQuit = "C: QUIT";
constexpr auto kBye = "S: 221 2.0.0 bye";

TEST(smtp_dialogue, says_what_a_failure_means_for_the_mail) {
  const struct {
    std::vector<std::string_view> said;
    SendResult result;
    bool transport_failed;
  } cases[] = {
      // Before RCPT, another mail would fail, too.
      {{}, kNotSent, true},
      {{"S: 554 no service"}, kNotSent, true},
      {{"S: 421 too busy"}, kNotSent, true},
      {{"S: 220 hello", "C: EHLO x", "S: 250 mail.test", "C: AUTH PLAIN", "S: 535 5.7.8 no"}, kNotSent, true},
      {{kMail}, kNotSent, true},
      {{kMail, "S: 450 4.7.1 later"}, kNotSent, true},
      {{kMail, "S: 550 5.7.1 this sender is unknown"}, kNotSent, true},
      {{kMail, "S: 552 5.3.4 the mail is too large"}, kRefused, false},
      // RCPT.
      {{kMail, kOk, kRcpt}, kNotSent, true},
      {{kMail, kOk, kRcpt, "S: 450 4.2.0 greylisted"}, kNotSent, false},
      {{kMail, kOk, kRcpt, "S: 452 4.2.2 full"}, kNotSent, false},
      {{kMail, kOk, kRcpt, "S: 421 4.3.2 shutting down"}, kNotSent, true},
      {{kMail, kOk, kRcpt, "S: 550 5.1.1 no such user"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550 5.1.10 no such user"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550 5.1.2 no such domain"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 553 5.1.3 bad syntax"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 551 5.1.6 moved"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550-5.1.1 The account", "S: 550 5.1.1 does not exist"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550 5.7.1 blocked"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 5.2.1 disabled"}, kRefused, false},
      // Without an enhanced code, the words decide.
      {{kMail, kOk, kRcpt, "S: 550 no such user"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550 No Such User here"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550 <a@relay.example>: mailbox unavailable"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 551 User unknown"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 553 the account does not exist"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550-Recipient address", "S: 550 not found"}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, "S: 550"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 no"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 <no.such.user.unknown@example.org> rejected"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 551 user not local"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 553 name not allowed"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 554 no such user"}, kRefused, false},
      // A wrong setting of the relay or the sender is answered for every recipient.
      {{kMail, kOk, kRcpt, "S: 550 5.1.8 sender rejected"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 5.1.7 bad sender's address"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 554 5.1.0 sender rejected"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 relay not permitted, unknown user"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 unknown sender address"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 recipient unavailable: access denied"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 550 unknown user, blocked as SPAM by policy"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 553 address not found in my list of allowed rcpthosts"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 552 quota"}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 554 no"}, kRefused, false},
      // DATA.
      {{kMail, kOk, kRcpt, kOk, kData}, kNotSent, true},
      {{kMail, kOk, kRcpt, kOk, kData, "S: 451 4.3.0 later"}, kNotSent, false},
      {{kMail, kOk, kRcpt, kOk, kData, "S: 554 5.5.1 no valid recipients"}, kRefused, false},
      {{kMail, kOk, kRcpt, kOk, kData, "S: 550 5.1.1 no such user"}, kRefused, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo}, kNotSent, true},
      // The body: without its last byte, the server cannot have taken the mail.
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "B"}, kNotSent, true},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "B", "E"}, kMaybeSent, true},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 451 4.7.1 later"}, kNotSent, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 421 4.3.2 shutting down"}, kNotSent, true},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 554 5.7.1 spam"}, kRefused, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 550 5.1.1 no such user"}, kRefused, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 251 forwarded"}, kSent, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: garbage"}, kMaybeSent, true},
      // libcurl may leave an old connection first.
      {{kQuit, kBye, "C: EHLO x", "S: 250 mail.test", kMail, kOk, kRcpt, "S: 550 5.1.1 no"}, kUnknownAddress, false},
      // The reply to QUIT is no reply to the mail.
      {{kMail, "S: 552 5.3.4 the mail is too large", kQuit, kBye}, kRefused, false},
      {{kMail, kOk, kRcpt, "S: 450 4.2.0 greylisted", kQuit, kBye}, kNotSent, false},
      {{kMail, kOk, kRcpt, "S: 550 5.1.1 no such user", kQuit, kBye}, kUnknownAddress, false},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", kQuit, kBye}, kMaybeSent, true},
      {{kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 554 5.7.1 spam", kQuit, kBye}, kRefused, false},
  };
  for (const auto& [said, result, transport_failed] : cases) {
    const auto outcome = dialogue(said).failure("the reason");
    EXPECT_EQ(outcome.result, result) << testing::PrintToString(said);
    EXPECT_EQ(outcome.transport_failed, transport_failed) << testing::PrintToString(said);
    EXPECT_EQ(outcome.detail.empty(), result == kSent) << testing::PrintToString(said);
  }
}

TEST(smtp_dialogue, the_detail_has_the_whole_reply_in_one_line) {
  const auto refused = dialogue({kMail, kOk, kRcpt, "S: 550-5.1.1 The account", "S: 550 5.1.1 does not exist"});
  EXPECT_EQ(refused.failure("x").detail, "550-5.1.1 The account 550 5.1.1 does not exist (in reply to RCPT)");
  EXPECT_EQ(dialogue({kMail, kOk, kRcpt}).failure("Connection reset by peer").detail,
            "Connection reset by peer (after RCPT)");
  EXPECT_EQ(dialogue({}).failure("Connection refused").detail, "Connection refused");
}

TEST(smtp_dialogue, the_log_gets_the_codes_of_a_reply_about_the_recipient_without_its_words) {
  const auto log_text = [](const std::vector<std::string_view>& said) {
    return dialogue(said).failure("the reason").log_text();
  };
  EXPECT_EQ(log_text({kMail, kOk, kRcpt, "S: 550 5.1.1 <alice@example.org>: no such user"}),
            "550 5.1.1 (in reply to RCPT)");
  EXPECT_EQ(log_text({kMail, kOk, kRcpt, "S: 450 alice@example.org is greylisted"}), "450 (in reply to RCPT)");
  EXPECT_EQ(log_text({kMail, kOk, kRcpt, "S: 421 4.3.2 alice@example.org: later"}), "421 4.3.2 (in reply to RCPT)");
  EXPECT_EQ(log_text({kMail, kOk, kRcpt, kOk, kData, kGo, "E", "S: 554 5.7.1 alice@example.org: spam"}),
            "554 5.7.1 (in reply to the message)");
  EXPECT_EQ(log_text({kMail, "S: 550 5.7.1 this sender is unknown"}),
            "550 5.7.1 this sender is unknown (in reply to MAIL)");
  EXPECT_EQ(log_text({kMail, kOk, kRcpt}), "the reason (after RCPT)");
}

TEST(smtp_dialogue, a_hostile_reply_is_cut_and_has_no_control_characters) {
  SmtpDialogue hostile = dialogue({kMail, kOk, kRcpt});
  for (int i = 0; i < 10'000; ++i) hostile.on_reply("550-\x1b[31m" + std::string(500, 'x') + "\r\n");
  const auto detail = hostile.failure("x").detail;
  EXPECT_LE(detail.size(), 500U);
  EXPECT_FALSE(detail.contains('\x1b'));
  EXPECT_LE(hostile.reply().size(), 3000U);
}

TEST(smtp_dialogue, an_answer_during_login_is_no_command) {
  const auto said = dialogue({"S: 220 hello", "C: AUTH LOGIN", "S: 334 VXNlcm5hbWU6", "C: DATAbase64", "S: 535 no"});
  EXPECT_EQ(said.stage(), SmtpStage::kConnect);
}

}  // namespace
}  // namespace fencepost::notify
