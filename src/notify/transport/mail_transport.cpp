#include "notify/transport/mail_transport.hpp"

#include "base/error.hpp"
#include "notify/transport/file_transport.hpp"
#include "notify/transport/smtp_transport.hpp"

namespace fencepost::notify {

std::unique_ptr<MailTransport> make_mail_transport(const EmailOptions& options) {
  switch (options.transport) {
    case TransportKind::kSmtp:
      return std::make_unique<SmtpTransport>(options);
    case TransportKind::kFile:
      return std::make_unique<FileTransport>(options.directory);
    case TransportKind::kNone:
      break;
  }
  throw Exception(internal("no_mail_transport", "email.transport is none: there is no transport to make"));
}

}  // namespace fencepost::notify
