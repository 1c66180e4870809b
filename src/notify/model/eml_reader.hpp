// Reads the mails that to_eml wrote (mail.hpp), for people who look at the files of the transport `file`. It is no
// reader for mails of other programs. Pure: no I/O.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace fencepost::notify {

struct ReadMail {
  std::string message_id;  // without angle brackets
  std::string date;        // as in the header
  std::string from;
  std::string to;
  std::string subject;
  std::string unsubscribe_url;  // empty: none
  std::string text;
  std::string html;
};

// Errors: kInvalid `bad_mail`, with what is missing.
Result<ReadMail> read_eml(std::string_view eml);

}  // namespace fencepost::notify
