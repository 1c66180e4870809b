#include "notify/page/flow_page.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/page/flow_mail_test_support.hpp"
#include "notify/page/utf8_characters.hpp"

namespace fencepost::notify {
namespace {

using testing::flow_mail_input;
using ::testing::HasSubstr;
using testing::kContract;
using testing::kQueueHash;
using ::testing::Not;

std::string text(const FlowMailInput& input) {
  return text_of(flow_page(input));
}

struct StatusCase {
  std::string_view from, to;
  std::string_view english_subject, english_headline, english_status;
  std::string_view chinese_subject, chinese_headline, chinese_status;
};

const StatusCase kStatusCases[] = {
    {"", "waiting", "Queued", "An operation was queued", "Waiting (new operation)", "新操作已排队",
     "一笔操作已进入队列", "等待中（新操作）"},
    {"waiting", "ready", "Ready to execute", "An operation is ready to execute", "Waiting → Ready", "可以执行",
     "一笔操作可以执行了", "等待中 → 可执行"},
    {"ready", "executed", "Executed", "An operation was executed", "Ready → Executed", "已执行", "一笔操作已执行",
     "可执行 → 已执行"},
    {"expired", "cancelled", "Cancelled", "An operation was cancelled", "Expired → Cancelled", "已取消",
     "一笔操作已取消", "已过期 → 已取消"},
    {"ready", "expired", "Expired", "An operation has expired", "Ready → Expired", "已过期", "一笔操作已过期",
     "可执行 → 已过期"},
};

FlowMailInput input_for(const StatusCase& c, Language language) {
  auto input = flow_mail_input(language);
  input.change.from.reset();
  if (!c.from.empty()) input.change.from = c.from;
  input.change.to = c.to;
  return input;
}

TEST(flow_page, says_in_english_what_happened) {
  for (const auto& c : kStatusCases) {
    const auto input = input_for(c, Language::kEnglish);
    EXPECT_EQ(flow_subject(input), std::string(c.english_subject) + ": Treasury timelock (0x6d90…3925) on mainnet");
    EXPECT_TRUE(text(input).starts_with(std::string(c.english_headline) + "\n==")) << text(input);
    EXPECT_THAT(text(input), HasSubstr("Status: " + std::string(c.english_status) + "\n"));
  }
}

TEST(flow_page, says_in_chinese_what_happened) {
  for (const auto& c : kStatusCases) {
    const auto input = input_for(c, Language::kChinese);
    EXPECT_EQ(flow_subject(input), std::string(c.chinese_subject) + "：Treasury timelock（0x6d90…3925，mainnet）");
    EXPECT_TRUE(text(input).starts_with(std::string(c.chinese_headline) + "\n==")) << text(input);
    EXPECT_THAT(text(input), HasSubstr("状态：" + std::string(c.chinese_status) + "\n"));
    EXPECT_EQ(flow_page(input).language, "zh-Hans");
  }
}

TEST(flow_page, a_correction_says_that_the_change_is_void_and_what_that_means) {
  for (const auto& c : kStatusCases) {
    auto input = input_for(c, Language::kEnglish);
    input.change.correction = true;
    const auto english = text(input);
    EXPECT_TRUE(flow_subject(input).starts_with("Change taken back (")) << flow_subject(input);
    EXPECT_TRUE(english.starts_with("A change was taken back\n")) << english;
    EXPECT_THAT(english, HasSubstr("reorganisation has undone that change"));
    EXPECT_THAT(english, HasSubstr("Status: " + std::string(c.english_status) + ", taken back\n"));
    EXPECT_THAT(english, Not(HasSubstr(c.english_headline)));

    input.language = Language::kChinese;
    EXPECT_TRUE(flow_subject(input).starts_with("变更已撤回（")) << flow_subject(input);
    EXPECT_THAT(text(input), HasSubstr("链发生重组"));
    EXPECT_THAT(text(input), HasSubstr("状态：" + std::string(c.chinese_status) + "，已撤回\n"));
  }
}

TEST(flow_page, every_status_means_something_else) {
  std::set<std::string> seen;
  for (const auto& row : kLanguages) {
    for (const auto& c : kStatusCases) {
      for (const bool correction : {false, true}) {
        auto input = input_for(c, row.value);
        input.change.correction = correction;
        seen.insert(flow_page(input).paragraphs.at(correction ? 1 : 0).front().text);
      }
    }
  }
  EXPECT_EQ(seen.size(), 2 * 2 * std::size(kStatusCases));
}

TEST(flow_page, no_placeholder_is_left) {
  for (const auto& row : kLanguages) {
    for (const auto& c : kStatusCases) {
      for (const bool correction : {false, true}) {
        auto input = input_for(c, row.value);
        input.change.correction = correction;
        input.flow.blocked_by = "0x1";
        input.flow.via = "0x2";
        input.flow.calls.resize(30, input.flow.calls.front());
        EXPECT_THAT(flow_subject(input) + text(input), Not(HasSubstr("{"))) << row.name << c.to;
      }
    }
  }
}

TEST(flow_page, times_are_absolute_and_relative) {
  auto input = flow_mail_input();
  EXPECT_THAT(text(input), HasSubstr("Changed at: 2026-11-18 08:57:00 UTC (3 minutes ago)\n"));
  EXPECT_THAT(text(input), HasSubstr("Ready at: 2026-11-20 09:00:00 UTC (in 2 days)\n"));
  EXPECT_THAT(text(input), HasSubstr("Expires at: 2026-12-04 09:00:00 UTC (in 16 days)\n"));
  input.language = Language::kChinese;
  EXPECT_THAT(text(input), HasSubstr("可执行时间：2026-11-20 09:00:00 UTC（2 天后）\n"));
  EXPECT_EQ(flow_page(input).preheader, "可执行时间：2026-11-20 09:00:00 UTC（2 天后）");
}

TEST(flow_page, a_change_by_the_clock_names_its_time_once) {
  auto input = flow_mail_input();
  input.change.to = "ready";
  input.change.changed_at = *input.flow.due_at;
  EXPECT_THAT(text(input), Not(HasSubstr("Changed at")));
  EXPECT_THAT(text(input), HasSubstr("Ready at: 2026-11-20 09:00:00 UTC"));
}

TEST(flow_page, a_time_beyond_the_calendar_is_said_to_be_so) {
  auto input = flow_mail_input();
  input.flow.due_at.reset();
  input.flow.expires_at.reset();
  EXPECT_THAT(text(input), HasSubstr("No date: the time in the contract is too far in the future"));
  EXPECT_THAT(text(input), Not(HasSubstr("Expires at")));
  input.language = Language::kChinese;
  EXPECT_THAT(text(input), HasSubstr("可执行时间：无法显示日期：合约中的时间过于遥远\n"));
  input.change.to = "executed";
  EXPECT_THAT(text(input), Not(HasSubstr("可执行时间"))) << "an executed operation had a time, which is not known here";
}

TEST(flow_page, an_expiry_that_no_longer_matters_is_left_out) {
  auto input = flow_mail_input();
  for (const std::string_view to : {"executed", "cancelled"}) {
    input.change.to = to;
    input.change.correction = false;
    EXPECT_THAT(text(input), Not(HasSubstr("Expires at"))) << to;
    input.change.correction = true;
    EXPECT_THAT(text(input), HasSubstr("Expires at")) << to;
  }
  input.now = *input.flow.expires_at + std::chrono::hours(1);
  EXPECT_THAT(text(input), HasSubstr("Expired at: 2026-12-04 09:00:00 UTC (1 hour ago)\n"));
}

TEST(flow_page, a_predecessor_that_blocks_is_named) {
  auto input = flow_mail_input();
  EXPECT_THAT(text(input), Not(HasSubstr("Blocked")));
  input.change.to = "ready";
  input.flow.blocked_by = "0xabc";
  EXPECT_THAT(text(input), HasSubstr("Blocked by: This operation cannot be executed before 0xabc has been executed\n"));
  EXPECT_THAT(text(input), HasSubstr("but another operation has to be executed first"));
  EXPECT_THAT(text(input), Not(HasSubstr("can be executed now")));
  EXPECT_TRUE(flow_subject(input).starts_with("Ready but blocked: Treasury timelock (")) << flow_subject(input);
  input.language = Language::kChinese;
  EXPECT_THAT(text(input), HasSubstr("前置操作：在 0xabc 执行之前，该操作无法执行\n"));
}

TEST(flow_page, what_is_optional_is_left_out) {
  auto input = flow_mail_input();
  for (const auto part : {"Via:", "Your remark:", "Queued in:"}) EXPECT_THAT(text(input), Not(HasSubstr(part)));
  input.flow.via = "0x309a862bbc1a00e45506cb8a802d1ff10004c8c0";
  input.remark = "Ask Mei";
  input.change.tx_hash = "0x" + std::string(64, 'e');
  EXPECT_THAT(text(input), HasSubstr("Via: 0x309a862bbc1a00e45506cb8a802d1ff10004c8c0\n"));
  EXPECT_THAT(text(input), HasSubstr("Your remark: Ask Mei\n"));
  EXPECT_THAT(text(input), HasSubstr("Queued in:\n  " + kQueueHash + "\n"));
  EXPECT_THAT(text(input), HasSubstr("Initiator: 0xc0da02939e1441f497fd74f78ce7decb17b66529\n"));
}

TEST(flow_page, a_contract_or_chain_without_a_name_is_known_by_its_number) {
  auto input = flow_mail_input();
  input.flow.contract_name.clear();
  input.chain_name = "chain 1";
  EXPECT_EQ(flow_subject(input), "Queued: timelock 0x6d90…3925 on chain 1");
  EXPECT_THAT(text(input), HasSubstr("Timelock: " + kContract + "\n"));
  EXPECT_THAT(text(input), HasSubstr("Chain: chain 1\n"));
  input.language = Language::kChinese;
  EXPECT_EQ(flow_subject(input), "新操作已排队：时间锁 0x6d90…3925（链 1）");
}

TEST(flow_page, links_lead_to_explorer_dashboard_and_unsubscribe_page) {
  for (const std::string_view explorer : {"https://etherscan.io", "https://etherscan.io/", "https://etherscan.io//"}) {
    auto input = flow_mail_input();
    input.explorer_url = explorer;
    const auto html = html_of(flow_page(input));
    EXPECT_THAT(html, HasSubstr("\"https://etherscan.io/tx/" + kQueueHash + "\"")) << explorer;
    EXPECT_THAT(html, HasSubstr("\"https://etherscan.io/address/" + kContract + "\"")) << explorer;
    EXPECT_THAT(html, HasSubstr("\"https://fencepost.example/flows/compound/1/x\""));
    EXPECT_THAT(html, HasSubstr("\"https://fencepost.example/unsubscribe/12.ab\""));
    EXPECT_THAT(text(input), HasSubstr("\nhttps://etherscan.io/tx/" + kQueueHash + "\n")) << explorer;
    EXPECT_THAT(text(input), HasSubstr("\nhttps://fencepost.example/flows/compound/1/x\n"));
    EXPECT_THAT(text(input), HasSubstr("\nhttps://fencepost.example/unsubscribe/12.ab\n"));
  }
}

TEST(flow_page, has_no_links_without_urls) {
  auto input = flow_mail_input();
  input.explorer_url.clear();
  input.dashboard_url.clear();
  input.unsubscribe_url.clear();
  EXPECT_THAT(html_of(flow_page(input)), Not(HasSubstr("<a ")));
  EXPECT_THAT(text(input), Not(HasSubstr("Unsubscribe")));
  EXPECT_THAT(text(input), HasSubstr("You get this mail because"));
}

TEST(flow_page, the_subject_stays_short) {
  auto input = flow_mail_input();
  input.change.correction = true;
  input.change.to = "cancelled";
  input.flow.contract_name.clear();
  for (int i = 0; i < 1000; ++i) input.flow.contract_name += "金库";
  input.chain_name = std::string(1000, 'x');
  for (const auto& row : kLanguages) {
    input.language = row.value;
    const auto subject = flow_subject(input);
    EXPECT_LE(characters_of(subject).size(), 180U) << subject;
    EXPECT_THAT(subject, HasSubstr("0x6d90…3925"));
  }
}

TEST(flow_page, an_unknown_status_is_a_bug) {
  auto input = flow_mail_input();
  input.change.to = "queued";
  EXPECT_THROW(flow_page(input), std::logic_error);
  input = flow_mail_input();
  input.change.from = "queued";
  EXPECT_THROW(flow_page(input), std::logic_error);
}

}  // namespace
}  // namespace fencepost::notify
