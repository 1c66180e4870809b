// Quoted-printable (RFC 2045, section 6.7): any text as lines of at most 76 printable ASCII characters.
#pragma once

#include <string>
#include <string_view>

namespace fencepost::notify {

// Lines of the input end with \n, lines of the output with CRLF. No output line ends with a space or a tab, and no
// character is split by a soft line break. "=_" never occurs in the output. Requires: UTF-8.
std::string to_quoted_printable(std::string_view text);
// The text again. "=" without two hexadecimal digits stays as it is.
std::string from_quoted_printable(std::string_view encoded);

}  // namespace fencepost::notify
