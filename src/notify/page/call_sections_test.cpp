#include "notify/page/call_sections.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "notify/page/flow_mail_test_support.hpp"
#include "notify/page/safe_text.hpp"

namespace fencepost::notify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::transfer_call;

const ExplorerLinks kLinks("https://etherscan.io");

std::vector<Section> english(const std::vector<FlowCall>& calls) {
  return call_sections(calls, kEnglishWords.call, kLinks);
}

// The rows and notes of the sections as text.
std::string text(std::vector<Section> sections) {
  Page page;
  page.colon = ": ";
  page.sections = std::move(sections);
  const auto out = text_of(page);
  return out.substr(out.find_first_not_of('\n'));
}

FlowCall unknown_call(std::size_t bytes) {
  auto call = transfer_call();
  call.explained = false;
  call.signature.clear();
  call.arguments.clear();
  call.data = "0xa9059cbb";
  while (call.data.size() < 2 + 2 * bytes) call.data += "0f";
  return call;
}

TEST(call_sections, an_explained_call_shows_function_target_and_arguments) {
  EXPECT_EQ(text(english({transfer_call()})),
            "Call\n"
            "----\n"
            "Function: transfer(address,uint256)\n"
            "Target: 0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48\n"
            "1. to (address): 0x7a250d5630b4cf539739df2c5dacb4c659f2488d\n"
            "2. (uint256): 250000\n");
}

TEST(call_sections, addresses_lead_to_the_explorer) {
  const auto section = english({transfer_call()}).front();
  EXPECT_EQ(section.rows[1].value.front().url,
            "https://etherscan.io/address/0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48");
  EXPECT_EQ(section.rows[2].value.front().url,
            "https://etherscan.io/address/0x7a250d5630b4cf539739df2c5dacb4c659f2488d");
}

TEST(call_sections, a_call_that_is_not_explained_shows_its_data_and_says_so) {
  const auto unknown = text(english({unknown_call(36)}));
  EXPECT_THAT(unknown, HasSubstr("Function: Unknown, with the selector 0xa9059cbb\n"));
  EXPECT_THAT(unknown, HasSubstr("0xa9059cbb0f0f"));
  EXPECT_THAT(unknown, HasSubstr("no certain way to decode"));
  auto call = unknown_call(36);
  call.signature = "setDelay(uint256)";
  EXPECT_THAT(text(english({call})), HasSubstr("Function: setDelay(uint256)\n"));
}

TEST(call_sections, a_call_without_data_is_no_riddle) {
  FlowCall call;
  call.target = transfer_call().target;
  call.value = "1";
  call.data = "0x";
  const auto shown = text(english({call}));
  EXPECT_THAT(shown, HasSubstr("Function: None, the call has no data\n"));
  EXPECT_THAT(shown, HasSubstr("0.000000000000000001 (in the chain's coin), which is 1 wei"));
  EXPECT_THAT(shown, Not(HasSubstr("decode")));
}

TEST(call_sections, coins_have_no_needless_digits) {
  const struct {
    std::string_view wei, coins;
  } cases[] = {
      {"0", ""},
      {"000", ""},
      {"", ""},
      {"-1", ""},
      {"0x10", ""},
      {"1000000000000000000000000000000000000000000000000000000000000000000000000000000", ""},  // 79 digits
      {"1", "0.000000000000000001"},
      {"100000000000000000", "0.1"},
      {"1000000000000000000", "1"},
      {"1500000000000000000", "1.5"},
      {"20000000000000000000", "20"},
      {"115792089237316195423570985008687907853269984665640564039457584007913129639935",
       "115792089237316195423570985008687907853269984665640564039457.584007913129639935"},
  };
  for (const auto& [wei, coins] : cases) EXPECT_EQ(coin_text(wei), coins) << wei;
}

TEST(call_sections, the_value_is_shown_unless_it_is_zero) {
  auto call = transfer_call();
  EXPECT_THAT(text(english({call})), Not(HasSubstr("Value")));
  call.value = "1500000000000000000";
  EXPECT_THAT(text(english({call})), HasSubstr("Value: 1.5 (in the chain's coin), which is 1500000000000000000 wei\n"));
}

TEST(call_sections, long_data_is_cut_and_says_how_long_it_is) {
  const auto whole = text(english({unknown_call(256)}));
  EXPECT_THAT(whole, Not(HasSubstr("…")));
  const auto cut = text(english({unknown_call(4096)}));
  EXPECT_THAT(cut, HasSubstr("(the first 256 of 4,096 bytes)"));
  EXPECT_LT(cut.size(), 1000U);
}

TEST(call_sections, a_long_argument_is_cut_between_characters) {
  auto call = transfer_call();
  std::string value = "x";
  for (int i = 0; i < 1000; ++i) value += "链";
  call.arguments = {{"note", "string", value}, {"empty", "string", ""}};
  const auto shown = text(english({call}));
  EXPECT_THAT(shown, HasSubstr("链… (the first 172 of 1,001\n  characters)\n"));
  EXPECT_THAT(shown, Not(HasSubstr("\ufffd")));
  EXPECT_THAT(shown, HasSubstr("2. empty (string): (empty)\n"));
}

TEST(call_sections, what_is_left_out_is_counted) {
  auto call = transfer_call();
  const auto argument = call.arguments.back();
  call.arguments.assign(kArgumentsShown, argument);
  EXPECT_THAT(english({call}).front().notes, IsEmpty());
  call.arguments.push_back(argument);
  EXPECT_THAT(english({call}).front().notes, ElementsAre(words("1 more argument is not shown here.")));
  call.arguments.assign(kArgumentsShown + 1234, argument);
  EXPECT_THAT(text(english({call})), HasSubstr("1,234 more arguments are not shown here."));

  EXPECT_EQ(english(std::vector(kCallsShown, transfer_call())).size(), kCallsShown);
  EXPECT_THAT(text(english(std::vector(kCallsShown + 1, transfer_call()))),
              HasSubstr("1 more call is not shown here."));
  const auto many = text(english(std::vector(kCallsShown + 5, transfer_call())));
  EXPECT_THAT(many, HasSubstr("Call 20 of 25\n"));
  EXPECT_THAT(many, Not(HasSubstr("Call 21 of 25\n")));
  EXPECT_THAT(many, HasSubstr("5 more calls are not shown here."));
}

TEST(call_sections, large_calls_leave_less_room_for_others) {
  auto call = transfer_call();
  call.arguments.assign(1000, {std::string(1000, '<'), std::string(1000, '&'), std::string(100'000, '"')});
  call.signature = std::string(10'000, '>');
  const auto sections = english(std::vector(3, call));
  ASSERT_EQ(sections.size(), 2U) << "one call, and the number of the others";
  EXPECT_THAT(text({sections[1]}), HasSubstr("2 more calls are not shown here."));
  EXPECT_LT(html_size(sections[0]), 80'000U);
}

}  // namespace
}  // namespace fencepost::notify
