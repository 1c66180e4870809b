#include "notify/workers/flow_notifier.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/contains.hpp"
#include "runtime/log.hpp"

namespace fencepost::notify {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kFlowEvent = "FlowStatusChanged";
constexpr std::string_view kOperatorEvents[] = {"TxStuck", "TimelockVerifyFailed"};
constexpr std::int64_t kRetractAtOnce = 1'000;
constexpr auto kLostPause = 250ms;

bool is_operator_event(std::string_view type) {
  return contains(kOperatorEvents, type);
}

// The changes at the front that are to be announced: they are handled together.
std::vector<FlowChange> announcements(std::span<const outbox::LogEvent* const> events) {
  std::vector<FlowChange> out;
  for (const auto* event : events) {
    if (event->type != kFlowEvent) break;
    auto change = read_flow_change(event->envelope);
    if (change.retracted) break;
    out.push_back(std::move(change));
  }
  return out;
}

}  // namespace

bool FlowNotifier::wants(const outbox::LogEvent& event) const {
  if (event.type == kFlowEvent) return true;
  return !parts_.operators.empty() && is_operator_event(event.type);
}

awaitable<outbox::Handed> FlowNotifier::deliver(std::vector<const outbox::LogEvent*> events) {
  for (std::size_t i = 0; i < events.size();) {
    auto changes = announcements(std::span(events).subspan(i));
    const auto count = std::max<std::size_t>(changes.size(), 1);
    const auto done = changes.empty() ? co_await handle(*events[i]) : co_await announce(std::move(changes));
    if (done == Done::kLost) {
      co_return outbox::Handed{.handled = i, .retry_after = kLostPause, .error = "the claim is lost"};
    }
    i += count;
  }
  co_return outbox::Handed{.handled = events.size(), .retry_after = {}, .error = ""};
}

awaitable<FlowNotifier::Done> FlowNotifier::handle(const outbox::LogEvent& event) {
  if (is_operator_event(event.type)) co_return co_await report(event);
  if (event.type != kFlowEvent) co_return Done::kYes;  // a gap: nothing is known of what was removed
  co_return co_await retract(read_flow_change(event.envelope));
}

awaitable<FlowNotifier::Done> FlowNotifier::announce(std::vector<FlowChange> changes) {
  auto found = co_await find_candidates(parts_.database.pool(), changes);
  std::vector<FlowMails> mails;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    auto candidates = std::move(found[i].by_initiator);
    std::ranges::move(found[i].by_contract.candidates, std::back_inserter(candidates));
    auto chosen = co_await choose(changes[i], std::move(candidates));
    if (!chosen.empty()) mails.push_back({changes[i], std::move(chosen)});
  }
  if (!mails.empty()) {
    const auto added = co_await add_flow_mails(parts_.database.pool(), claim_, std::move(mails));
    if (!added) co_return Done::kLost;
    note(*added);
  }
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto done = co_await announce_rest(changes[i], std::move(found[i].by_contract));
    if (done != Done::kYes) co_return done;
  }
  co_return Done::kYes;
}

awaitable<FlowNotifier::Done> FlowNotifier::announce_rest(const FlowChange& change, CandidatePage page) {
  auto& pool = parts_.database.pool();
  while (page.next) {
    page = co_await more_candidates(pool, change, *page.next);
    auto chosen = co_await choose(change, std::move(page.candidates));
    if (chosen.empty()) continue;
    std::vector<FlowMails> mails;
    mails.push_back({change, std::move(chosen)});
    const auto added = co_await add_flow_mails(pool, claim_, std::move(mails));
    if (!added) co_return Done::kLost;
    note(*added);
  }
  co_return Done::kYes;
}

awaitable<std::vector<std::int64_t>> FlowNotifier::choose(const FlowChange& change, std::vector<Candidate> candidates) {
  std::set<std::int64_t> chosen;
  std::optional<std::vector<FlowCall>> calls;
  for (const auto& candidate : candidates) {
    if (!candidate.filters.empty()) {
      if (!calls) calls = co_await calls_of(change.ref);
      if (!candidate.filters.match(*calls)) continue;
    }
    chosen.insert(candidate.email_id);
  }
  co_return std::vector(chosen.begin(), chosen.end());
}

// A flow that cannot be read matches no filter: it must not stop the mails about other flows.
awaitable<std::vector<FlowCall>> FlowNotifier::calls_of(FlowRef ref) {
  std::optional<Error> failure;
  try {
    const auto flow = co_await parts_.flows.find_flow(ref);
    co_return flow ? flow->calls : std::vector<FlowCall>{};
  } catch (const Exception& e) {
    if (e.error().kind != ErrorKind::kInternal) throw;
    failure = e.error();
  }
  log::error("a flow cannot be read: subscriptions with filters get no mail about it", *failure,
             {{"flowId", ref.flow_id}});
  co_return std::vector<FlowCall>{};
}

awaitable<FlowNotifier::Done> FlowNotifier::retract(FlowChange change) {
  for (auto left = kRetractAtOnce; left == kRetractAtOnce;) {
    const auto done = co_await retract_flow_mails(parts_.database.pool(), claim_, change, kRetractAtOnce);
    if (!done) co_return Done::kLost;
    if (*done > 0) parts_.new_mail();
    left = *done;
  }
  co_return Done::kYes;
}

awaitable<FlowNotifier::Done> FlowNotifier::report(const outbox::LogEvent& event) {
  const auto envelope = boost::json::parse(event.envelope);
  const auto added = co_await add_operator_mails(parts_.database.pool(), claim_,
                                                 {.seq = event.seq,
                                                  .type = event.type,
                                                  .subject = event.subject,
                                                  .at = event.at,
                                                  .data = boost::json::serialize(envelope.at("data"))},
                                                 parts_.operators);
  if (!added) co_return Done::kLost;
  note(*added);
  co_return Done::kYes;
}

void FlowNotifier::note(std::int64_t added) {
  if (added == 0) return;
  parts_.queued_total.Increment(static_cast<double>(added));
  parts_.new_mail();
}

}  // namespace fencepost::notify
