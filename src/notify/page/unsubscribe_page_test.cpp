#include "notify/page/unsubscribe_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const UnsubscribeSubject kSubject{"<me>@example.org", "0x6d903f6003cca6255d85cca4d3b5e5146dc33925", 137};

TEST(unsubscribe_page, only_the_question_has_a_button) {
  for (const auto& row : kLanguages) {
    const auto question = html_of(unsubscribe_question(kSubject, row.value));
    EXPECT_THAT(question, HasSubstr("<form method=\"post\"")) << row.name;
    EXPECT_THAT(html_of(unsubscribe_done(kSubject, row.value)), Not(HasSubstr("<form"))) << row.name;
    EXPECT_THAT(html_of(unsubscribe_bad_link(row.value)), Not(HasSubstr("<form"))) << row.name;
  }
}

TEST(unsubscribe_page, names_address_contract_and_chain) {
  for (const auto& row : kLanguages) {
    for (const auto& page : {unsubscribe_question(kSubject, row.value), unsubscribe_done(kSubject, row.value)}) {
      const auto html = html_of(page);
      EXPECT_THAT(html, HasSubstr("&lt;me&gt;@example.org")) << row.name;
      EXPECT_THAT(html, HasSubstr(kSubject.contract)) << row.name;
      EXPECT_THAT(html, HasSubstr(">137<")) << row.name;
      EXPECT_THAT(html.substr(html.find("<body")), Not(HasSubstr("{"))) << row.name;
    }
  }
}

TEST(unsubscribe_page, speaks_the_reader_s_language) {
  EXPECT_THAT(html_of(unsubscribe_question(kSubject, Language::kEnglish)), HasSubstr(">Unsubscribe</button>"));
  const auto chinese = html_of(unsubscribe_question(kSubject, Language::kChinese));
  EXPECT_THAT(chinese, HasSubstr("<html lang=\"zh-Hans\">"));
  EXPECT_THAT(chinese, HasSubstr(">退订</button>"));
  EXPECT_THAT(html_of(unsubscribe_bad_link(Language::kChinese)), HasSubstr("链接无效"));
}

}  // namespace
}  // namespace fencepost::notify
