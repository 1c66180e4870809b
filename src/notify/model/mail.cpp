#include "notify/model/mail.hpp"

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "notify/model/mail_header.hpp"
#include "notify/model/quoted_printable.hpp"

namespace fencepost::notify {
namespace {

void require_safe(const Mail& mail) {
  require_bare_address("From", mail.from);
  require_bare_address("To", mail.to);
  require_header_token("Message-ID", mail.message_id, "<>");
  if (mail.unsubscribe_url) require_header_token("List-Unsubscribe", *mail.unsubscribe_url, "<>");
}

// The parts cannot contain it: in quoted-printable text, "=" is followed by a hexadecimal digit or ends the line.
std::string boundary_of(const Mail& mail) {
  return "=_" + sha256_hex(mail.message_id).substr(0, 24);
}

std::string headers_of(const Mail& mail, std::string_view boundary) {
  auto out = header_line("Date", header_date(mail.date));
  out += header_line("From", mail.from);
  out += header_line("To", mail.to);
  out += header_text("Subject", repair_utf8(mail.subject));
  out += header_line("Message-ID", fmt::format("<{}>", mail.message_id));
  out += header_line("Auto-Submitted", "auto-generated");
  if (mail.unsubscribe_url) {
    out += header_line("List-Unsubscribe", fmt::format("<{}>", *mail.unsubscribe_url));
    out += header_line("List-Unsubscribe-Post", "List-Unsubscribe=One-Click");
  }
  out += header_line("MIME-Version", "1.0");
  out += header_line("Content-Type", fmt::format("multipart/alternative; boundary=\"{}\"", boundary));
  return out;
}

// The line break before the boundary belongs to the boundary: a text without a newline at its end gets none.
std::string mime_part(std::string_view boundary, std::string_view type, std::string_view text) {
  return fmt::format(
      "--{}\r\n"
      "Content-Type: {}; charset=utf-8\r\n"
      "Content-Transfer-Encoding: quoted-printable\r\n"
      "\r\n"
      "{}\r\n",
      boundary, type, to_quoted_printable(repair_utf8(text)));
}

}  // namespace

std::string to_eml(const Mail& mail) {
  require_safe(mail);
  const auto boundary = boundary_of(mail);
  auto out = headers_of(mail, boundary) + "\r\n";
  out += mime_part(boundary, "text/plain", mail.text);
  out += mime_part(boundary, "text/html", mail.html);  // last: readers show the last part that they understand
  out += fmt::format("--{}--\r\n", boundary);
  return out;
}

}  // namespace fencepost::notify
