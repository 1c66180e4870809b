#include "notify/model/eml_reader.hpp"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "notify/model/quoted_printable.hpp"

namespace fencepost::notify {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kWordBegin = "=?UTF-8?B?";
constexpr std::string_view kWordEnd = "?=";

using Headers = std::map<std::string, std::string>;  // by name in lowercase

// What stands before `end`, which is removed with it; nullopt: there is no such end.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view end) {
  const auto at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const auto out = text.substr(0, at);
  text.remove_prefix(at + end.size());
  return out;
}

// Takes the headers and the empty line after them; a folded line becomes one.
Headers take_headers(std::string_view& text) {
  Headers out;
  std::string* last = nullptr;
  while (const auto line = take_until(text, kLineEnd)) {
    if (line->empty()) break;
    if (line->starts_with(' ') && last != nullptr) {
      *last += *line;
      continue;
    }
    auto value = *line;
    const auto name = take_until(value, ":");
    if (!name) continue;
    if (value.starts_with(' ')) value.remove_prefix(1);
    last = &(out[lowercase(*name)] = value);
  }
  return out;
}

// Joins encoded words, between which white space does not count.
std::string decode_words(std::string_view text) {
  if (!text.starts_with(kWordBegin)) return std::string(text);
  std::string out;
  while (text.starts_with(kWordBegin)) {
    text.remove_prefix(kWordBegin.size());
    const auto word = take_until(text, kWordEnd);
    if (!word) break;
    out += from_base64(*word).value_or("");
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  return out;
}

std::string without_brackets(std::string text) {
  return text.starts_with('<') && text.ends_with('>') ? text.substr(1, text.size() - 2) : text;
}

Error bad_mail(std::string_view why) {
  return invalid("bad_mail", fmt::format("This is not a mail that Fencepost wrote: {}.", why));
}

std::string boundary_in(std::string_view content_type) {
  take_until(content_type, "boundary=\"");
  const auto boundary = take_until(content_type, "\"");
  return std::string(boundary.value_or(""));
}

}  // namespace

Result<ReadMail> read_eml(std::string_view eml) {
  auto headers = take_headers(eml);
  ReadMail out{.message_id = without_brackets(headers["message-id"]),
               .date = headers["date"],
               .from = headers["from"],
               .to = headers["to"],
               .subject = decode_words(headers["subject"]),
               .unsubscribe_url = without_brackets(headers["list-unsubscribe"]),
               .text = {},
               .html = {}};
  if (out.message_id.empty() || out.to.empty()) return fail(bad_mail("it has no Message-ID or no To"));
  const auto boundary = boundary_in(headers["content-type"]);
  if (boundary.empty()) return fail(bad_mail("it has no parts"));
  const auto separator = fmt::format("--{}", boundary);
  take_until(eml, separator);
  while (auto part = take_until(eml, separator)) {
    if (part->starts_with(kLineEnd)) part->remove_prefix(kLineEnd.size());
    auto of_part = take_headers(*part);
    if (part->ends_with(kLineEnd)) part->remove_suffix(kLineEnd.size());
    auto& content = of_part["content-type"].starts_with("text/html") ? out.html : out.text;
    content = from_quoted_printable(*part);
  }
  return out;
}

}  // namespace fencepost::notify
