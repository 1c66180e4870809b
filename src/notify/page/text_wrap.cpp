#include "notify/page/text_wrap.hpp"

#include <algorithm>
#include <vector>

#include "notify/page/utf8_characters.hpp"

namespace fencepost::notify {
namespace {

// The blocks of wide characters that matter for Chinese, Japanese, Korean and emoji.
bool is_wide(char32_t c) {
  constexpr struct {
    char32_t first, last;
  } kBlocks[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                 {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};
  return std::ranges::any_of(kBlocks, [c](const auto& block) { return c >= block.first && c <= block.last; });
}

std::size_t columns_of_character(char32_t c) {
  return is_wide(c) ? 2 : 1;
}

bool must_not_begin_a_line(char32_t c) {
  return std::u32string_view(U"，。、：；！？）》」』】”’…%").contains(c);
}

bool must_not_end_a_line(char32_t c) {
  return std::u32string_view(U"（《「『【“‘").contains(c);
}

bool may_break_between(char32_t before, char32_t after) {
  if (before == U' ') return after != U' ';
  if (after == U' ' || must_not_begin_a_line(after) || must_not_end_a_line(before)) return false;
  return is_wide(before) || is_wide(after);
}

// A run of characters that stays on one line if it fits.
struct Word {
  std::string_view text;
  std::size_t columns = 0;
};

std::vector<Word> words_in(std::string_view text) {
  const auto characters = characters_of(text);
  std::vector<Word> out;
  std::size_t begin = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    at += characters[i].bytes.size();
    if (i + 1 < characters.size() && !may_break_between(characters[i].code, characters[i + 1].code)) continue;
    const auto word = text.substr(begin, at - begin);
    out.push_back({word, columns_of(word)});
    begin = at;
  }
  return out;
}

class Wrapping {
 public:
  Wrapping(std::size_t columns, std::size_t indent) : columns_(columns), indent_(indent) {}

  void add(const Word& word) {
    const auto visible = word.columns - static_cast<std::size_t>(word.text.ends_with(' '));
    if (used_ + visible > columns_ && !at_start_) next_line();
    if (used_ + visible <= columns_) {
      append(word.text, word.columns);
      return;
    }
    for (const auto& [code, bytes] : characters_of(word.text)) {
      if (used_ + columns_of_character(code) > columns_) next_line();
      append(bytes, columns_of_character(code));
    }
  }

  std::string finish() {
    end_line();
    return std::move(out_);
  }

 private:
  void append(std::string_view text, std::size_t columns) {
    out_ += text;
    used_ += columns;
    if (text.find_first_not_of(' ') != std::string_view::npos) at_start_ = false;
  }
  void end_line() {
    while (out_.ends_with(' ')) out_.pop_back();
    out_ += '\n';
  }
  void next_line() {
    end_line();
    out_.append(indent_, ' ');
    used_ = indent_;
    at_start_ = true;
  }

  std::size_t columns_;
  std::size_t indent_;
  std::string out_;
  std::size_t used_ = 0;
  bool at_start_ = true;
};

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t out = 0;
  for (const auto& character : characters_of(text)) out += columns_of_character(character.code);
  return out;
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  Wrapping wrapping(columns, indent);
  for (const auto& word : words_in(text)) wrapping.add(word);
  return wrapping.finish();
}

}  // namespace fencepost::notify
