#include "notify/notify_manager.hpp"

#include "notify/workers/flow_notifier.hpp"

namespace fencepost::notify {

NotifyManager::NotifyManager(Parts parts, const EmailOptions& options)
    : parts_(std::move(parts)),
      options_(options),
      transport_(options.configured() ? make_mail_transport(options) : nullptr),
      emails_({transport_.get(), parts_.public_url, parts_.clock, parts_.chains}, options),
      addresses_({parts_.database, parts_.random, emails_, [this] { wake(); }}, options),
      subscriptions_(parts_.database, parts_.flows),
      queued_total_(parts_.metrics.counter("mails_queued_total", "Mails that were stored to be sent")) {
  if (transport_) {
    sender_.emplace(MailSender::Parts{parts_.runtime, parts_.database, emails_, parts_.flows, parts_.metrics});
    cleaner_.emplace(parts_.runtime.executor(0), parts_.database, options.log_retention, parts_.metrics);
  }
}

void NotifyManager::wake() {
  if (sender_) sender_->wake();
}

outbox::SinkFactory NotifyManager::factory() {
  return [this](outbox::Claim claim) -> awaitable<std::unique_ptr<outbox::Sink>> {
    FlowNotifier::Parts parts{.database = parts_.database,
                              .flows = parts_.flows,
                              .operators = options_.operators,
                              .new_mail = [this] { wake(); },
                              .queued_total = queued_total_};
    co_return std::make_unique<FlowNotifier>(std::move(parts), std::move(claim));
  };
}

awaitable<> NotifyManager::prepare() {
  co_await emails_.prepare(pool());
}

void NotifyManager::start() {
  if (sender_) sender_->start();
  if (cleaner_) cleaner_->start();
}

awaitable<> NotifyManager::stop(std::chrono::milliseconds limit) {
  if (cleaner_) co_await cleaner_->stop(limit);
  if (sender_) co_await sender_->stop(limit);
}

}  // namespace fencepost::notify
