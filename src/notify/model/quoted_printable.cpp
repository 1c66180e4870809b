#include "notify/model/quoted_printable.hpp"

#include <array>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "base/hex.hpp"

namespace fencepost::notify {
namespace {

constexpr std::size_t kContentMax = 76 - 1;  // leaves room for the "=" of a soft line break

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// The first character of the text, of one byte or more.
std::string_view first_character(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && is_continuation(text[length])) ++length;
  return text.substr(0, length);
}

std::string encoded(std::string_view character, bool ends_line) {
  const char c = character.front();
  const bool blank = c == ' ' || c == '\t';
  const bool literal = blank ? !ends_line : c > ' ' && c <= '~' && c != '=';
  if (character.size() == 1 && literal) return std::string(character);
  std::string out;
  for (const char byte : character) {
    fmt::format_to(std::back_inserter(out), "={:02X}", static_cast<unsigned char>(byte));
  }
  return out;
}

}  // namespace

std::string to_quoted_printable(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  std::size_t column = 0;
  while (!text.empty()) {
    const auto character = first_character(text);
    text.remove_prefix(character.size());
    if (character == "\n") {
      out += "\r\n";
      column = 0;
      continue;
    }
    const auto piece = encoded(character, text.empty() || text.front() == '\n');
    if (column + piece.size() > kContentMax) {
      out += "=\r\n";
      column = 0;
    }
    out += piece;
    column += piece.size();
  }
  return out;
}

std::string from_quoted_printable(std::string_view encoded) {
  std::string out;
  while (!encoded.empty()) {
    std::array<std::uint8_t, 1> byte{};
    std::size_t length = 1;
    if (encoded.starts_with("=\r\n")) {
      length = 3;
    } else if (encoded.starts_with("\r\n")) {
      out += '\n';
      length = 2;
    } else if (encoded.front() == '=' && decode_hex(encoded.substr(1, 2), byte)) {
      out += static_cast<char>(byte[0]);
      length = 3;
    } else {
      out += encoded.front();
    }
    encoded.remove_prefix(length);
  }
  return out;
}

}  // namespace fencepost::notify
