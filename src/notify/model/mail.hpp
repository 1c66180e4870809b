// One mail, complete, before it is written as RFC 5322 text.
#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"

namespace fencepost::notify {

struct Mail {
  // Without angle brackets. The same for every attempt to send the same mail: receivers recognise a repetition by it.
  std::string message_id;
  std::string from;  // bare addresses, checked (mail_address.hpp)
  std::string to;
  std::string subject;  // UTF-8, one line
  std::string text;     // UTF-8, lines end with \n
  std::string html;
  std::optional<std::string> unsubscribe_url;  // List-Unsubscribe, with one click (RFC 8058)
  TimePoint date;
};

// The mail as RFC 5322 text with CRLF: multipart/alternative, quoted-printable, header words encoded (RFC 2047).
// Deterministic: the same mail gives the same bytes. Bytes that are not UTF-8 become U+FFFD. Throws Exception
// `bad_mail`
//   - if an address, the message id or the URL has a space, a control character, an angle bracket or a character
//     outside ASCII, or an address is not one bare address: such a value would add headers or SMTP commands;
//   - if the subject has a control character;
//   - if the URL does not fit into a header line of 998 bytes.
std::string to_eml(const Mail& mail);

}  // namespace fencepost::notify
