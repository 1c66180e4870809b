#include "notify/words/language.hpp"

#include <gtest/gtest.h>

namespace fencepost::notify {
namespace {

TEST(language, is_what_the_browser_prefers) {
  constexpr auto kEn = Language::kEnglish;
  constexpr auto kZh = Language::kChinese;
  const struct {
    std::string_view header;
    Language language;
  } cases[] = {
      {"", kEn},
      {"zh", kZh},
      {"ZH-cn", kZh},
      {"zh-Hans-CN, en", kZh},
      {"zh-CN,zh;q=0.9,en;q=0.8", kZh},
      {"en-GB,en;q=0.9,zh;q=0.8", kEn},
      {"en;q=0.1, zh ; q=0.2", kZh},
      {"zh;q=0.5,en", kEn},
      {"de, fr;q=0.9", kEn},
      {"de,zh;q=0.3", kZh},
      {"zh;q=0, de", kEn},
      {"*", kEn},
      {"zh;q=high", kEn},
      {"zh;q=nan", kEn},
      {"zh;q=2", kEn},
      {"zh;level=1", kEn},
      {"zhuang", kEn},
      {",,;;,zh", kZh},
      {";q=1", kEn},
  };
  for (const auto& [header, language] : cases) EXPECT_EQ(preferred_language(header), language) << header;
}

}  // namespace
}  // namespace fencepost::notify
