// Base64 with padding (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fencepost {

std::string to_base64(std::string_view bytes);
// nullopt: it is not base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace fencepost
