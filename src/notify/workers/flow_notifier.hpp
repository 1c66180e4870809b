// Reads the log of events and decides who gets which mail: one row for each mail, in the transaction that its key
// guards. The sender (mail_sender.hpp) sends what the rows say.
//
// A durable consumer of the log (outbox/delivery): one node at a time runs it, and after a crash another one goes on
// where it was. An event that is offered twice adds nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "notify/model/flow_change.hpp"
#include "notify/service/flow_source.hpp"
#include "notify/store/recipient_store.hpp"
#include "outbox/delivery/sink.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"

namespace fencepost::notify {

inline constexpr std::string_view kNotifierKind = "mail";
inline constexpr std::string_view kNotifier = "mail/notifier";  // the one consumer of this kind

class FlowNotifier final : public outbox::Sink {
 public:
  struct Parts {
    pg::Database& database;
    FlowSource& flows;
    std::vector<std::string> operators;
    std::function<void()> new_mail;  // wakes the sender; any thread
    Metrics::Counter& queued_total;
  };
  FlowNotifier(Parts parts, outbox::Claim claim) : parts_(std::move(parts)), claim_(std::move(claim)) {}

  bool wants(const outbox::LogEvent& event) const override;
  awaitable<outbox::Handed> deliver(std::vector<const outbox::LogEvent*> events) override;
  std::size_t max_batch() const override { return 100; }

 private:
  enum class Done { kYes, kLost };
  awaitable<Done> handle(const outbox::LogEvent& event);
  awaitable<Done> announce(std::vector<FlowChange> changes);
  awaitable<Done> announce_rest(const FlowChange& change, CandidatePage page);
  awaitable<Done> retract(FlowChange change);
  awaitable<Done> report(const outbox::LogEvent& event);
  // The addresses of the candidates whose filters match. Looks at the flow only if there are filters.
  awaitable<std::vector<std::int64_t>> choose(const FlowChange& change, std::vector<Candidate> candidates);
  awaitable<std::vector<FlowCall>> calls_of(FlowRef ref);
  void note(std::int64_t added);

  Parts parts_;
  outbox::Claim claim_;
};

}  // namespace fencepost::notify
