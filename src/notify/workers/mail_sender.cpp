#include "notify/workers/mail_sender.hpp"

#include <fmt/format.h>

#include "notify/model/mail_address.hpp"
#include "runtime/gather.hpp"
#include "runtime/log.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 1s;
constexpr auto kMargin = 2s;     // of a claim, for storing the outcome
constexpr auto kFlowFresh = 1s;  // for so long, what was read of a flow serves further mails
constexpr std::size_t kFlowsKnown = 1'000;
constexpr auto kMailsHelp = "Attempts to send a mail, by what became of it";

Metrics::Counter& counter(Metrics& metrics, const char* result) {
  return metrics.counter("mail_attempts_total", kMailsHelp, {{"result", result}});
}

}  // namespace

// A claim is long enough for an attempt that takes as long as it may, after a wait as long for a free connection.
MailSender::MailSender(Parts parts)
    : parts_(parts),
      claim_(2 * parts.emails.options().timeout + 2 * kMargin),
      pace_(parts.emails.options().rate_per_second, parts.emails.options().domain_rate_per_second),
      pause_({.initial = 500ms, .cap = 30s}, random_),
      ends_(
          parts.runtime, {.name = "mail_ends", .lanes = 1},
          [this](std::span<const MailEnd> ends) { return end_attempts(parts_.database.pool(), ends); }, parts.metrics),
      sent_total_(counter(parts.metrics, "success")),
      failed_total_(counter(parts.metrics, "failed")),
      dead_total_(counter(parts.metrics, "dead")),
      suppressed_total_(counter(parts.metrics, "suppressed")),
      backlog_(parts.metrics.gauge("mail_backlog", "Mails that are due and not being sent, at most 30,000")),
      oldest_(parts.metrics.gauge("mail_backlog_age_seconds", "How long the oldest of these mails has been due")),
      codes_(parts.runtime.executor(0), "mail codes", parts.emails.transport().connections()),
      // While one lane stores an outcome, another one uses the connection.
      flow_mails_(parts.runtime.executor(0), "mails about flows", 2 * parts.emails.transport().connections()),
      reports_(parts.runtime.executor(0), "mails to operators", 1),
      worker_(
          parts.runtime.executor(0), {.name = "mail_sender", .interval = kLook}, [this] { return step(); },
          parts.metrics) {}

void MailSender::start() {
  ends_.start();
  worker_.start();
}

// An attempt that has begun may end: cut off, it would be repeated.
awaitable<> MailSender::stop(std::chrono::milliseconds limit) {
  stopping_ = true;
  co_await worker_.stop(limit);
  const auto grace = std::min<std::chrono::milliseconds>(limit, parts_.emails.options().timeout + kMargin);
  std::vector<awaitable<>> stops;
  for (auto* group : {&codes_, &flow_mails_, &reports_}) stops.push_back(group->stop(grace));
  co_await gather(std::move(stops));
  co_await ends_.stop(limit);
}

ClaimLimits MailSender::free_lanes() const {
  const auto places = pace_.free_places(Steady::now());
  const auto free = [&](const TaskGroup& group, std::size_t lanes) { return std::min(lanes - group.size(), places); };
  const auto connections = parts_.emails.transport().connections();
  return {
      .codes = free(codes_, connections), .flows = free(flow_mails_, 2 * connections), .operators = free(reports_, 1)};
}

// A lane that ends wakes the worker.
awaitable<Worker::Next> MailSender::step() {
  const auto now = Steady::now();
  if (stopping_ || now < paused_until_) co_return Worker::Next::kRest;
  if (pace_.free_places(now) == 0) {
    asio::steady_timer timer(co_await this_executor(), pace_.next_place());
    co_await timer.async_wait(asio::use_awaitable);
    co_return Worker::Next::kAgain;
  }
  const auto lanes = free_lanes();
  if (lanes.codes + lanes.flows + lanes.operators == 0) co_return Worker::Next::kRest;
  auto mails = co_await claim_mails(parts_.database.pool(), lanes, claim_);
  const bool more = (lanes.codes > 0 && mails.codes.size() == lanes.codes) ||
                    (lanes.flows > 0 && mails.flows.size() == lanes.flows) ||
                    (lanes.operators > 0 && mails.operators.size() == lanes.operators);
  co_await begin(std::move(mails), now + claim_ - parts_.emails.options().timeout - kMargin);
  if (now - backlog_shown_ >= kLook) {
    backlog_shown_ = now;
    co_await show_backlog();
  }
  co_return more ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<> MailSender::show_backlog() {
  const auto left = co_await mail_backlog(parts_.database.pool());
  backlog_.Set(static_cast<double>(left.mails));
  oldest_.Set(std::chrono::duration<double>(left.oldest).count());
}

// There is a lane for each mail: no other coroutine begins one.
awaitable<> MailSender::begin(Outgoing mails, Steady::time_point start_by) {
  const auto flows = co_await look_up(mails.flows);
  bool begun = true;
  for (auto& mail : mails.codes) begun = codes_.spawn(send_code(std::move(mail), start_by)) && begun;
  for (auto& mail : mails.operators) begun = reports_.spawn(send_report(std::move(mail), start_by)) && begun;
  for (auto& mail : mails.flows) {
    auto flow = flows.at(mail.ref);
    begun = flow_mails_.spawn(send_flow_mail(std::move(mail), std::move(flow), start_by)) && begun;
  }
  if (!begun) log::warn("mails wait until their claim expires: this node stops", {});
}

awaitable<> MailSender::send_code(CodeMail mail, Steady::time_point start_by) {
  if (mail.expired || !mail.salt) {
    co_await suppress(mail.row, mail.expired ? "the code has expired" : "the code was replaced");
  } else if (co_await may_send(mail.row)) {
    co_await end_with(mail.row, co_await parts_.emails.send_code(mail, start_by));
  }
  worker_.wake();
}

awaitable<> MailSender::send_report(OperatorMail mail, Steady::time_point start_by) {
  if (co_await may_send(mail.row)) {
    co_await end_with(mail.row, co_await parts_.emails.send_operator_report(mail, start_by));
  }
  worker_.wake();
}

awaitable<> MailSender::send_flow_mail(FlowMail mail, Result<FlowFacts> flow, Steady::time_point start_by) {
  auto readers = std::move(mail.readers);
  // What was not matched by the filters then, or would not be now, is not this person's mail.
  if (flow && !mail.change.correction) {
    std::erase_if(readers, [&](const Reader& one) { return !one.filters.empty() && !one.filters.match(flow->calls); });
  }
  if (mail.voided || readers.empty() || !mail.is_deliverable) {
    co_await suppress(mail.row, mail.voided       ? *mail.voided
                                : readers.empty() ? "no subscription asks for it any more"
                                                  : "the address bounces");
  } else if (co_await may_send(mail.row)) {
    if (flow) {
      co_await end_with(mail.row, co_await parts_.emails.send_flow_notification(mail, readers, *flow, start_by));
    } else {
      co_await end_with(mail.row, {.result = SendResult::kNotSent, .detail = flow.error().message});
    }
  }
  worker_.wake();
}

// All flows at once, and none again that was just read.
awaitable<std::map<FlowRef, Result<FlowFacts>>> MailSender::look_up(const std::vector<FlowMail>& mails) {
  const auto now = Steady::now();
  if (flows_.size() > kFlowsKnown) flows_.clear();
  std::erase_if(flows_, [&](const auto& one) { return now - one.second.read_at > kFlowFresh; });
  std::map<FlowRef, Result<FlowFacts>> out;
  std::vector<FlowRef> asked;
  std::vector<awaitable<Result<FlowFacts>>> questions;
  for (const auto& mail : mails) {
    const auto known = flows_.find(mail.ref);
    const bool is_new = out.emplace(mail.ref, known == flows_.end() ? FlowFacts{} : known->second.facts).second;
    if (!is_new || known != flows_.end()) continue;
    asked.push_back(mail.ref);
    // If the flow is gone, the mail says what its row knows.
    questions.push_back(facts_of({.ref = mail.ref, .initiator = mail.initiator, .via = mail.via}));
  }
  const auto answers = co_await gather(std::move(questions));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    out.at(asked[i]) = answers[i];
    flows_.insert_or_assign(asked[i], KnownFlow{answers[i], now});
  }
  co_return out;
}

// A flow that cannot be read fails its own mails only.
awaitable<Result<FlowFacts>> MailSender::facts_of(FlowFacts known) {
  std::optional<Error> failure;
  try {
    auto found = co_await parts_.flows.find_flow(known.ref);
    co_return found ? std::move(*found) : std::move(known);
  } catch (const Exception& e) {
    if (e.error().kind != ErrorKind::kInternal) throw;
    failure = e.error();
  }
  co_return fail(std::move(*failure));
}

awaitable<bool> MailSender::may_send(const MailRow& row) {
  const auto now = Steady::now();
  auto wait = 0ms;
  if (now < paused_until_) {
    wait = std::chrono::ceil<std::chrono::milliseconds>(paused_until_ - now);
  } else if (!stopping_) {
    wait = pace_.take(domain_of(row.address), now);
    if (wait == 0ms) co_return true;
  }
  co_await end(row, {.status = SendStatus::kPending, .delay = wait, .error = ""});
  co_return false;
}

awaitable<> MailSender::end_with(const MailRow& row, const SendOutcome& outcome) {
  learn(outcome);
  auto decision = decide(outcome, row.failures, row.age, parts_.emails.options(), random_);
  switch (decision.status) {
    case SendStatus::kSuccess:
      sent_total_.Increment();
      break;
    case SendStatus::kPending:
      break;  // not tried
    case SendStatus::kDead:
      dead_total_.Increment();
      log::warn("a mail is not sent", {{"mail", row.id}, {"reason", outcome.log_text()}});
      break;
    default:
      failed_total_.Increment();
      log::info("a mail will be tried again",
                {{"mail", row.id}, {"reason", outcome.log_text()}, {"retryInMs", decision.delay.count()}});
      break;
  }
  co_await end(row, std::move(decision));
}

awaitable<> MailSender::end(const MailRow& row, SendDecision decision) {
  co_await ends_.submit("", {.kind = row.kind, .id = row.id, .token = row.token, .decision = std::move(decision)});
}

awaitable<> MailSender::suppress(const MailRow& row, std::string why) {
  suppressed_total_.Increment();
  co_await end(row, {.status = SendStatus::kSuppressed, .error = std::move(why)});
}

// The first failure of the transport pauses the sender; the first success ends that.
void MailSender::learn(const SendOutcome& outcome) {
  if (!outcome.transport_failed) {
    pause_.reset();
    paused_until_ = {};
    return;
  }
  if (Steady::now() < paused_until_) return;
  const auto pause = pause_.next();
  paused_until_ = Steady::now() + pause;
  log::warn("mail cannot be sent now", {{"reason", outcome.log_text()}, {"pauseMs", pause.count()}});
}

}  // namespace fencepost::notify
