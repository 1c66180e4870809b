#include "cli/text_table.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace fencepost::cli {
namespace {

constexpr std::size_t kMaxText = 1 << 20;

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// Counts characters: every character printed here is one column wide.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

void pad(std::string& line, std::string_view cell, std::size_t width) {
  line += cell;
  line.append(width - width_of(cell), ' ');
}

}  // namespace

std::string printable(std::string_view text) {
  return plain_text(text, kMaxText);
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (width_of(text) <= columns) return std::string(text);
  std::size_t kept = 0;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    if (begins_character(text[end]) && ++kept == columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string short_hex(std::string_view hex) {
  constexpr std::size_t kHead = 10;
  constexpr std::size_t kTail = 4;
  if (hex.size() <= kHead + kTail + 1) return std::string(hex);
  return std::string(hex.substr(0, kHead)) + "…" + std::string(hex.substr(hex.size() - kTail));
}

void TextTable::add(std::vector<std::string> cells) {
  for (auto& cell : cells) cell = printable(cell);
  cells.resize(rows_.front().size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) pad(line, row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

void FactList::add(std::string name, std::string_view value) {
  if (!value.empty()) facts_.emplace_back(std::move(name), printable(value));
}

std::string FactList::text() const {
  std::size_t width = 0;
  for (const auto& [name, value] : facts_) width = std::max(width, width_of(name));
  std::string out;
  for (const auto& [name, value] : facts_) {
    pad(out, name, width + 2);
    out += value + "\n";
  }
  return out;
}

}  // namespace fencepost::cli
