#include "base/request_id.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace fencepost {
namespace {

// U+0000 to U+001F, U+007F, and U+0080 to U+009F, which UTF-8 writes as C2 80 to C2 9F.
bool has_control_character(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7f) return true;
    if (byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0) return true;
  }
  return false;
}

}  // namespace

Result<std::string> parse_request_id(std::string_view text) {
  const auto bad = [](std::string why) { return fail(invalid("bad_request_id", std::move(why))); };
  if (text.empty()) return bad("must not be empty");
  if (text.size() > kRequestIdMaxBytes) {
    return bad(fmt::format("expected at most {} bytes, got {}", kRequestIdMaxBytes, text.size()));
  }
  if (repair_utf8(text) != text) return bad(fmt::format("expected UTF-8, got {}", quote(text)));
  if (has_control_character(text)) return bad(fmt::format("must not contain control characters, got {}", quote(text)));
  return std::string(text);
}

}  // namespace fencepost
