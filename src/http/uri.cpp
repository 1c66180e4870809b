#include "http/uri.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fencepost::http {
namespace {

constexpr std::size_t kMaxQueryParameters = 100;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Error bad_encoding(std::string_view why) {
  return invalid("bad_percent_encoding", fmt::format("the request target {}", why));
}

// How many bytes the UTF-8 sequence at the start of `text` has; 0 when there is no valid one. The bounds on the
// second byte keep out overlong forms, surrogates and what lies beyond U+10FFFF.
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    return continues(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = continues(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto length = utf8_sequence(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Result<std::string> percent_decode(std::string_view text, PlusSign plus) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus == PlusSign::kSpace) {
      c = ' ';
    } else if (c == '%') {
      const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail(bad_encoding("has a '%' that two hexadecimal digits do not follow"));
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return fail(bad_encoding("contains a NUL byte"));
    out += c;
  }
  if (!is_utf8(out)) return fail(bad_encoding("is not UTF-8"));
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (alphanumeric || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

Result<QueryParameters> parse_query(std::string_view text) {
  QueryParameters parameters;
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    if (parameters.size() == kMaxQueryParameters) {
      return fail(invalid("too_many_parameters", fmt::format("at most {} query parameters", kMaxQueryParameters)));
    }
    const auto equals = std::min(item.find('='), item.size());
    auto name = percent_decode(item.substr(0, equals), PlusSign::kSpace);
    if (!name) return fail(std::move(name.error()));
    auto value = percent_decode(item.substr(std::min(equals + 1, item.size())), PlusSign::kSpace);
    if (!value) return fail(std::move(value.error()));
    parameters.emplace_back(std::move(*name), std::move(*value));
  }
  return parameters;
}

}  // namespace fencepost::http
