// The header lines of a mail (RFC 5322, RFC 2047). Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace fencepost::notify {

// "Name: value" with CRLF, not folded: some readers take a line break before the value as part of it. Throws Exception
// `bad_mail` if it is longer than 998 bytes. Requires: a value of printable ASCII.
std::string header_line(std::string_view name, std::string_view value);

// The text as the value of a header: unchanged if it is ASCII and fits on the line, otherwise as encoded words in
// UTF-8, folded into lines of at most 76 characters. Throws Exception `bad_mail` if it has a control character.
// Requires: UTF-8.
std::string header_text(std::string_view name, std::string_view text);

// "Wed, 18 Nov 2026 08:30:01 +0000"
std::string header_date(TimePoint time);

// Throws Exception `bad_mail` unless the value is printable ASCII without spaces and without any of `forbidden`: `what`
// in its message says which value it is.
void require_header_token(std::string_view what, std::string_view value, std::string_view forbidden);

// Throws Exception `bad_mail` unless the value is fit for the header and for an SMTP command: one bare address.
void require_bare_address(std::string_view what, std::string_view address);

}  // namespace fencepost::notify
