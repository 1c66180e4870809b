#include "notify/transport/smtp_transport.hpp"

#include <algorithm>

namespace fencepost::notify {
namespace {

constexpr std::chrono::seconds kQuitLimit{1};

std::vector<std::unique_ptr<SmtpSession>> sessions_of(const EmailOptions& options) {
  std::vector<std::unique_ptr<SmtpSession>> out;
  const auto count = std::max<std::size_t>(1, options.connections);
  for (std::size_t i = 0; i < count; ++i) out.push_back(std::make_unique<SmtpSession>(options));
  return out;
}

}  // namespace

SmtpTransport::SmtpTransport(const EmailOptions& options)
    : sessions_(sessions_of(options)),
      jobs_({.name = "fp-mail", .threads = sessions_.size(), .at_end = [this](std::size_t thread) {
               sessions_[thread]->close();
             }}) {}

SmtpTransport::~SmtpTransport() {
  jobs_.close();
  for (const auto& session : sessions_) session->interrupt();
  if (jobs_.wait_for_end(kQuitLimit)) return;
  for (const auto& session : sessions_) session->abandon();
}

awaitable<SendOutcome> SmtpTransport::send(Mail mail, Time start_by) {
  auto work = [this, mail = std::move(mail), start_by](std::size_t thread) {
    if (std::chrono::steady_clock::now() > start_by) return SendOutcome{SendResult::kNotTried, kTooLate, false};
    return sessions_[thread]->send(mail.from, mail.to, to_eml(mail));
  };
  auto outcome = co_await jobs_.run(std::move(work));
  if (outcome) co_return std::move(*outcome);
  co_return SendOutcome{SendResult::kNotTried, kTransportFull, true};
}

}  // namespace fencepost::notify
