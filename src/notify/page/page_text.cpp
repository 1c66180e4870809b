#include <algorithm>

#include <fmt/format.h>

#include "notify/page/page.hpp"
#include "notify/page/safe_text.hpp"
#include "notify/page/text_wrap.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kIndent = 2;

std::string plain(const Line& line) {
  std::string out;
  for (const auto& piece : line) out += one_line(piece.text);
  return out;
}

std::string underlined(std::string_view text, char with) {
  const auto line = one_line(text);
  return fmt::format("{}{}\n", wrapped(line, kTextColumns, 0),
                     std::string(std::min(columns_of(line), kTextColumns), with));
}

// The colon at the end of a line.
std::string_view bare(std::string_view colon) {
  return colon.substr(0, colon.find_last_not_of(' ') + 1);
}

// A value that does not fit beside its label begins on the next line: hashes stay whole.
std::string row_text(const Row& row, std::string_view colon) {
  const auto label = one_line(row.label);
  const auto value = plain(row.value);
  const auto beside = fmt::format("{}{}{}", label, colon, value);
  if (columns_of(beside) <= kTextColumns) return beside + '\n';
  return wrapped(fmt::format("{}{}", label, bare(colon)), kTextColumns, kIndent) +
         wrapped(std::string(kIndent, ' ') + value, kTextColumns, kIndent);
}

std::string section_text(const Section& section, std::string_view colon) {
  auto out = '\n' + underlined(section.heading, '-');
  for (const auto& row : section.rows) out += row_text(row, colon);
  for (const auto& note : section.notes) out += wrapped(plain(note), kTextColumns, 0);
  return out;
}

std::string actions_text(const std::vector<Action>& actions, std::string_view colon) {
  std::string out;
  for (const auto& action : actions) {
    if (is_web_url(action.url)) out += fmt::format("\n{}{}\n{}\n", one_line(action.label), bare(colon), action.url);
  }
  return out;
}

}  // namespace

std::string text_of(const Page& page) {
  auto out = underlined(page.headline, '=');
  if (!page.code.empty()) out += fmt::format("\n{}\n", one_line(page.code));
  for (const auto& paragraph : page.paragraphs) out += '\n' + wrapped(plain(paragraph), kTextColumns, 0);
  out += actions_text(page.actions, page.colon);
  for (const auto& section : page.sections) out += section_text(section, page.colon);
  if (page.footer.empty() && page.footer_actions.empty()) return out;
  out += "\n----\n";
  for (const auto& line : page.footer) out += wrapped(plain(line), kTextColumns, kIndent);
  return out + actions_text(page.footer_actions, page.colon);
}

}  // namespace fencepost::notify
