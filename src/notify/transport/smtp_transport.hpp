// Mail by SMTP. Each connection has a thread of its own, on which libcurl blocks.
#pragma once

#include <memory>
#include <vector>

#include "notify/transport/blocking_jobs.hpp"
#include "notify/transport/mail_transport.hpp"
#include "notify/transport/smtp_session.hpp"

namespace fencepost::notify {

class SmtpTransport final : public MailTransport {
 public:
  // Does not connect. Throws if the URL is not one.
  explicit SmtpTransport(const EmailOptions& options);
  // Refuses new mails, ends transfers at once (their outcome says what is known) and says QUIT on idle connections, for
  // at most a second. Requires: the loops of waiting callers still exist.
  ~SmtpTransport() override;

  awaitable<SendOutcome> send(Mail mail, Time start_by = Time::max()) override;
  std::size_t connections() const override { return sessions_.size(); }
  std::string_view name() const override { return "smtp"; }

 private:
  std::vector<std::unique_ptr<SmtpSession>> sessions_;  // one for each thread
  BlockingJobs jobs_;
};

}  // namespace fencepost::notify
