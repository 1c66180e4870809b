// Sends the mails that are due, from all three tables, on every node.
//
// One worker claims as many rows as there are free lanes, and each lane sends one mail and stores its outcome. The
// claim is committed before a mail leaves, and no attempt begins that could outlast its claim, so a mail is repeated
// only if the node dies, or the connection breaks, between its last byte and its stored outcome: with the same
// Message-ID.
//
// Each kind of mail has lanes of its own, so that none starves another. While the transport fails as a whole, no row is
// claimed.
//
// Pinned to one loop, except wake().
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "base/backoff.hpp"
#include "base/random.hpp"
#include "notify/service/email_service.hpp"
#include "notify/service/flow_source.hpp"
#include "notify/store/outgoing_store.hpp"
#include "notify/workers/send_pace.hpp"
#include "pg/batched_write.hpp"
#include "pg/database.hpp"
#include "runtime/metrics.hpp"
#include "runtime/runtime.hpp"
#include "runtime/task_group.hpp"
#include "runtime/worker.hpp"

namespace fencepost::notify {

class MailSender {
 public:
  struct Parts {
    Runtime& runtime;
    pg::Database& database;
    EmailService& emails;
    FlowSource& flows;
    Metrics& metrics;
  };
  explicit MailSender(Parts parts);

  // Call both on loop 0.
  void start();
  awaitable<> stop(std::chrono::milliseconds limit);

  // There may be mails that are due. Any thread.
  void wake() { worker_.wake(); }

 private:
  using Steady = std::chrono::steady_clock;

  awaitable<Worker::Next> step();
  ClaimLimits free_lanes() const;
  // Begins a task for each mail. `start_by`: a later attempt could outlast the claim.
  awaitable<> begin(Outgoing mails, Steady::time_point start_by);
  awaitable<> show_backlog();

  awaitable<> send_code(CodeMail mail, Steady::time_point start_by);
  awaitable<> send_report(OperatorMail mail, Steady::time_point start_by);
  awaitable<> send_flow_mail(FlowMail mail, Result<FlowFacts> flow, Steady::time_point start_by);
  // The flows of these mails, by their references.
  awaitable<std::map<FlowRef, Result<FlowFacts>>> look_up(const std::vector<FlowMail>& mails);
  awaitable<Result<FlowFacts>> facts_of(FlowFacts known);

  // Takes the mail's place; false: the row was given back.
  awaitable<bool> may_send(const MailRow& row);
  awaitable<> end(const MailRow& row, SendDecision decision);
  awaitable<> end_with(const MailRow& row, const SendOutcome& outcome);
  awaitable<> suppress(const MailRow& row, std::string why);
  void learn(const SendOutcome& outcome);

  struct KnownFlow {
    Result<FlowFacts> facts;
    Steady::time_point read_at;
  };

  Parts parts_;
  const std::chrono::milliseconds claim_;
  SendPace pace_;
  SystemRandom random_;
  Backoff pause_;
  Steady::time_point paused_until_{};
  Steady::time_point backlog_shown_{};
  bool stopping_ = false;
  std::map<FlowRef, KnownFlow> flows_;  // read a moment ago: mails about one flow come together
  pg::BatchedWrite<MailEnd, bool> ends_;
  Metrics::Counter& sent_total_;
  Metrics::Counter& failed_total_;
  Metrics::Counter& dead_total_;
  Metrics::Counter& suppressed_total_;
  Metrics::Gauge& backlog_;
  Metrics::Gauge& oldest_;
  TaskGroup codes_;
  TaskGroup flow_mails_;
  TaskGroup reports_;
  Worker worker_;
};

}  // namespace fencepost::notify
