// Writes each kind of mail and hands it to the transport. One attempt: what becomes of the row is the sender's matter
// (workers/mail_sender.hpp). Any loop may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/secret.hpp"
#include "identity/public_url.hpp"
#include "notify/model/mail_content.hpp"
#include "notify/options.hpp"
#include "notify/store/outgoing_store.hpp"
#include "notify/transport/mail_transport.hpp"
#include "pg/pool.hpp"

namespace fencepost::notify {

// How mails name a chain, and where they link to.
struct ChainLabel {
  std::string name;
  std::string explorer_url;  // empty: no links
};

class EmailService {
 public:
  struct Parts {
    MailTransport* transport;  // nullptr: this node sends no mail
    const identity::PublicUrl& public_url;
    const Clock& clock;
    std::map<std::int64_t, ChainLabel> chains;
  };
  EmailService(Parts parts, const EmailOptions& options);

  // Reads the secret of this installation. Call after the migrations. Idempotent.
  awaitable<> prepare(pg::Pool& pool);

  bool sends() const { return parts_.transport != nullptr; }

  // Require: sends(). `start_by`: see MailTransport::send. `readers`: the people whom the mail is for, at least one.
  awaitable<SendOutcome> send_code(const CodeMail& mail, MailTransport::Time start_by);
  awaitable<SendOutcome> send_flow_notification(const FlowMail& mail, const std::vector<Reader>& readers,
                                                const FlowFacts& flow, MailTransport::Time start_by);
  awaitable<SendOutcome> send_operator_report(const OperatorMail& mail, MailTransport::Time start_by);

  // A flow's mail as a person would get it, without remark and unsubscribe link.
  MailContent preview(const FlowFacts& flow, const FlowTransition& change, Language language) const;

  // Throws kUnavailable `not_ready` before `prepare`.
  const Secret& secret() const;
  MailTransport& transport() { return *parts_.transport; }
  const EmailOptions& options() const { return options_; }

 private:
  FlowMailInput input_of(const FlowFacts& flow, const FlowTransition& change, Language language) const;
  Mail mail_of(std::string_view kind, const MailRow& row, MailContent content) const;
  std::string flow_url(const FlowRef& ref) const;
  // A mail that cannot be written as text is refused, and fails alone.
  awaitable<SendOutcome> hand_over(Mail mail, MailTransport::Time start_by);

  Parts parts_;
  EmailOptions options_;
  std::atomic<std::shared_ptr<const Secret>> secret_;
};

}  // namespace fencepost::notify
