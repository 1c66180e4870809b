// The languages of mails and pages.
#pragma once

#include <string_view>

#include "base/name_table.hpp"

namespace fencepost::notify {

enum class Language { kEnglish, kChinese };

inline constexpr auto kLanguages = name_table<Language>({
    {Language::kEnglish, "en", "English"},
    {Language::kChinese, "zh", "简体中文"},
});

// The language that the header Accept-Language prefers ("zh-CN,zh;q=0.9,en;q=0.8"). English when the header names none
// of ours, or cannot be read.
Language preferred_language(std::string_view accept_language);

}  // namespace fencepost::notify
