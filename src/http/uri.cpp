#include "http/uri.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

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

}  // namespace

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
      if (high < 0 || low < 0) return fail(bad_encoding("has a '%' without two hexadecimal digits after it"));
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
      return fail(
          invalid("too_many_parameters", fmt::format("expected at most {} query parameters", kMaxQueryParameters)));
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

std::string local_url(std::string_view host, std::uint16_t port, std::string_view scheme) {
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  return fmt::format(fmt::runtime(host.contains(':') ? "{}://[{}]:{}" : "{}://{}:{}"), scheme, host, port);
}

}  // namespace fencepost::http
