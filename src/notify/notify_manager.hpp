// Mail on this node: wires the parts of notify, starts and stops them.
//
//   NotifyManager mail(parts, options);
//   if (mail.sends()) consumers.add_kind(std::string(kNotifierKind), mail.factory());
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "identity/public_url.hpp"
#include "notify/options.hpp"
#include "notify/service/address_service.hpp"
#include "notify/service/email_service.hpp"
#include "notify/service/flow_source.hpp"
#include "notify/service/subscription_service.hpp"
#include "notify/workers/mail_cleaner.hpp"
#include "notify/workers/mail_sender.hpp"
#include "outbox/delivery/sink.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::notify {

class NotifyManager {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    const Clock& clock;
    Random& random;  // fit for secrets
    const identity::PublicUrl& public_url;
    FlowSource& flows;
    Metrics& metrics;
    std::map<std::int64_t, ChainLabel> chains;
  };
  NotifyManager(Parts parts, const EmailOptions& options);

  // Whether this node sends mail. If not, it still answers people, except that it adds no address.
  bool sends() const { return transport_ != nullptr; }
  // Of the consumer kNotifier. Requires: sends().
  outbox::SinkFactory factory();

  // After the migrations. Idempotent.
  awaitable<> prepare();
  // Call both on loop 0.
  void start();
  awaitable<> stop(std::chrono::milliseconds limit);

  AddressService& addresses() { return addresses_; }
  SubscriptionService& subscriptions() { return subscriptions_; }
  EmailService& emails() { return emails_; }
  FlowSource& flows() { return parts_.flows; }
  const Clock& clock() const { return parts_.clock; }
  pg::Pool& pool() { return parts_.database.pool(); }

 private:
  // There may be new mails. Any thread.
  void wake();

  Parts parts_;
  EmailOptions options_;
  std::unique_ptr<MailTransport> transport_;  // null: no mail is sent
  EmailService emails_;
  AddressService addresses_;
  SubscriptionService subscriptions_;
  Metrics::Counter& queued_total_;
  std::optional<MailSender> sender_;
  std::optional<MailCleaner> cleaner_;
};

}  // namespace fencepost::notify
