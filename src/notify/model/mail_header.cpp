#include "notify/model/mail_header.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kLineWanted = 76;
constexpr std::size_t kLineMax = 998;
// With "Subject: =?UTF-8?B?" and "?=", 39 bytes give a line of 73 characters.
constexpr std::size_t kBytesPerWord = 39;

Exception bad_mail(std::string message) {
  return Exception(invalid("bad_mail", std::move(message)));
}

bool is_printable(char c) {
  return c >= ' ' && c <= '~';
}

// The length of the longest beginning of the text that has at most `limit` bytes and ends between two characters.
std::size_t cut_between_characters(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text.size();
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0) == 0x80) --limit;
  return limit;
}

std::string encoded_words(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto length = cut_between_characters(text, kBytesPerWord);
    if (!out.empty()) out += "\r\n ";
    out += fmt::format("=?UTF-8?B?{}?=", to_base64(text.substr(0, length)));
    text.remove_prefix(length);
  }
  return out;
}

// Whether a reader gets exactly this text back from the unencoded form.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, is_printable) && !text.contains("=?") && !text.starts_with(' ') &&
         !text.ends_with(' ');
}

}  // namespace

std::string header_line(std::string_view name, std::string_view value) {
  if (name.size() + 2 + value.size() > kLineMax) {
    throw bad_mail(fmt::format("{} does not fit into a line of {} bytes", name, kLineMax));
  }
  return fmt::format("{}: {}\r\n", name, value);
}

std::string header_text(std::string_view name, std::string_view text) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::ranges::any_of(text, is_control)) {
    throw bad_mail(fmt::format("{} {} has a control character", name, quote(text)));
  }
  const bool plain = is_plain(text) && name.size() + 2 + text.size() <= kLineWanted;
  return fmt::format("{}: {}\r\n", name, plain ? std::string(text) : encoded_words(text));
}

std::string header_date(TimePoint time) {
  static constexpr std::array kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{std::chrono::floor<std::chrono::seconds>(time - day)};
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} +0000", kDays[std::chrono::weekday(day).c_encoding()],
                     static_cast<unsigned>(date.day()), kMonths[static_cast<unsigned>(date.month()) - 1],
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

void require_header_token(std::string_view what, std::string_view value, std::string_view forbidden) {
  const auto allowed = [&](char c) { return c != ' ' && is_printable(c) && !forbidden.contains(c); };
  if (value.empty()) throw bad_mail(fmt::format("{} is empty", what));
  if (!std::ranges::all_of(value, allowed)) {
    throw bad_mail(fmt::format("{} {} has a character that is not allowed there", what, quote(value)));
  }
}

void require_bare_address(std::string_view what, std::string_view address) {
  require_header_token(what, address, "()<>[]:;,\\\"");
  if (std::ranges::count(address, '@') != 1 || address.starts_with('@') || address.ends_with('@')) {
    throw bad_mail(fmt::format("{} {} is not an address", what, quote(address)));
  }
}

}  // namespace fencepost::notify
