// The characters of a text with their bytes.
#pragma once

#include <string_view>
#include <vector>

namespace fencepost::notify {

struct Character {
  char32_t code = 0;
  std::string_view bytes;  // of the text that was given
};

// Requires: valid UTF-8 (base/text.hpp repairs it).
inline std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> out;
  out.reserve(text.size());
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const auto lead = static_cast<unsigned char>(text[begin]);
    char32_t code = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1fU : lead < 0xf0 ? lead & 0x0fU : lead & 0x07U;
    for (end = begin + 1; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80; ++end) {
      code = code << 6 | (static_cast<unsigned char>(text[end]) & 0x3fU);
    }
    out.push_back({code, text.substr(begin, end - begin)});
  }
  return out;
}

}  // namespace fencepost::notify
