#include "cli/text_table.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/text.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kMaxText = 1 << 20;

struct Range {
  char32_t first;
  char32_t last;
};
// East Asian Width W and F of Unicode, in blocks.
constexpr Range kWide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x23E9, 0x23EC},   {0x2E80, 0x303E},
                           {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
                           {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                           {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};
constexpr Range kCombining[] = {{0x0300, 0x036F}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
                                {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}};

bool is_in(std::span<const Range> ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](const Range& range) { return range.first <= c && c <= range.last; });
}

// The bytes and columns of the character at `at`. Requires: at < text.size(). Text that is not UTF-8 is measured, too.
struct Character {
  std::size_t bytes = 1;
  std::size_t columns = 1;
};
Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  Character out;
  char32_t code = first < 0xC0 ? first : first < 0xE0 ? first & 0x1F : first < 0xF0 ? first & 0x0F : first & 0x07;
  while (at + out.bytes < text.size() && (static_cast<unsigned char>(text[at + out.bytes]) & 0xC0) == 0x80) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + out.bytes++]) & 0x3F);
  }
  if (is_in(kWide, code)) out.columns = 2;
  if (is_in(kCombining, code)) out.columns = 0;
  return out;
}

void pad(std::string& line, std::string_view cell, std::size_t width) {
  line += cell;
  line.append(width - columns_of(cell), ' ');
}

constexpr std::size_t kGap = 2;              // between columns
constexpr std::size_t kNarrowestColumn = 4;  // keeps three characters and the sign of a cut

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto character = character_at(text, at);
    columns += character.columns;
    at += character.bytes;
  }
  return columns;
}

std::string printable(std::string_view text) {
  return plain_text(text, kMaxText);
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  std::size_t taken = 1;  // by the sign of a cut
  std::size_t end = 0;
  while (end < text.size()) {
    const auto character = character_at(text, end);
    taken += character.columns;
    if (taken > columns) break;
    end += character.bytes;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string short_hex(std::string_view hex) {
  constexpr std::size_t kHead = 10;
  constexpr std::size_t kTail = 4;
  if (hex.size() <= kHead + kTail + 1) return std::string(hex);
  return std::string(hex.substr(0, kHead)) + "…" + std::string(hex.substr(hex.size() - kTail));
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : kFullWidth;
}

// A column that is printed.
struct TextTable::Shown {
  std::size_t index;
  int rank;
  std::size_t width;
  std::size_t least;  // the width to which its cells may be shortened

  static std::size_t total(const std::vector<Shown>& columns, std::size_t Shown::* width) {
    std::size_t sum = columns.empty() ? 0 : kGap * (columns.size() - 1);
    for (const auto& column : columns) sum += column.*width;
    return sum;
  }

  // The columns that fit, in the order of the table; the most important ones are chosen first.
  static std::vector<Shown> fitting(std::vector<Shown> columns, std::size_t width) {
    std::ranges::sort(columns, {}, [](const Shown& column) { return std::pair(column.rank, column.index); });
    std::vector<Shown> out;
    for (const auto& column : columns) {
      out.push_back(column);
      if (column.rank > 0 && total(out, &Shown::least) > width) out.pop_back();
    }
    std::ranges::sort(out, {}, &Shown::index);
    return out;
  }

  static void shorten(std::vector<Shown>& columns, std::size_t width) {
    if (total(columns, &Shown::least) > width) {
      for (auto& column : columns) column.least = std::min(column.least, kNarrowestColumn);
    }
    const auto excess = [](const Shown& column) { return column.width > column.least ? column.width : 0; };
    while (total(columns, &Shown::width) > width) {
      const auto widest = std::ranges::max_element(columns, {}, excess);
      if (excess(*widest) == 0) return;
      --widest->width;
    }
  }
};

TextTable::TextTable(const std::vector<TableColumn>& columns) : columns_(columns), rows_(1) {
  for (const auto& column : columns_) rows_.front().push_back(column.header);
}

void TextTable::add(std::vector<std::string> cells) {
  for (auto& cell : cells) cell = printable(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::vector<TextTable::Shown> TextTable::all_columns() const {
  std::vector<Shown> out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = 0;
    for (const auto& row : rows_) widest = std::max(widest, columns_of(row[i]));
    if (widest == 0) continue;  // no header and no text: nothing that takes room from others
    const auto least = columns_[i].least_width;
    out.push_back({i, columns_[i].rank, widest, least == 0 ? widest : std::min(least, widest)});
  }
  return out;
}

std::size_t TextTable::full_width() const {
  return Shown::total(all_columns(), &Shown::width);
}

std::string TextTable::text(std::size_t width) const {
  auto columns = Shown::fitting(all_columns(), width);
  Shown::shorten(columns, width);
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (const auto& column : columns) pad(line, shortened(row[column.index], column.width), column.width + kGap);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const auto word = text.substr(0, std::max<std::size_t>(text.find(' ', 1), 1));  // with the space before it
    text.remove_prefix(std::min(word.size(), text.size()));
    const auto columns = columns_of(word);
    if (column > indent && column + columns > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      const auto begin = word.find_first_not_of(' ');
      if (begin == std::string_view::npos) continue;
      out += word.substr(begin);
      column += columns - begin;
    } else {
      out += word;
      column += columns;
    }
  }
  return out;
}

void FactList::add(std::string name, std::string_view value) {
  if (!value.empty()) facts_.emplace_back(std::move(name), printable(value));
}

std::string FactList::text(std::size_t width) const {
  std::size_t names = 0;
  for (const auto& [name, value] : facts_) names = std::max(names, columns_of(name));
  const auto indent = names + kGap;
  std::string out;
  for (const auto& [name, value] : facts_) {
    std::string line;
    pad(line, name, indent);
    out += wrapped(line + value, width, indent) + "\n";
  }
  return out;
}

}  // namespace fencepost::cli
