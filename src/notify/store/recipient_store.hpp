// Who gets a mail about a change of a flow, and the rows of email_send_logs that say so. Functions throw as pg::Pool
// does.
//
// The unique key of email_send_logs decides: a change that is offered again adds nothing. Every write also goes through
// the claim of the consumer that reads the log (outbox/delivery/consumer_store.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "notify/model/flow_change.hpp"
#include "notify/model/notify_filters.hpp"
#include "outbox/delivery/consumer_store.hpp"
#include "pg/pool.hpp"

namespace fencepost::notify {

namespace sql {
extern const pg::Statement kByInitiator;
extern const pg::Statement kByContract;
extern const pg::Statement kAddMails;
extern const pg::Statement kRetract;
extern const pg::Statement kAddOperatorMails;
}  // namespace sql

// One subscription that asks for the change. Several of them may name the same address.
struct Candidate {
  std::int64_t email_id = 0;
  NotifyFilters filters;
};

struct CandidatePage {
  std::vector<Candidate> candidates;
  std::optional<std::int64_t> next;  // pass it as `after` of the next page; nullopt: this was the last
};

inline constexpr std::size_t kCandidatePage = 1'000;

// Who asks for a change, as far as one look shows.
struct Candidates {
  std::vector<Candidate> by_initiator;  // subscriptions of the people whose wallet, or whose Safe, queued the flow
  CandidatePage by_contract;            // the first of the subscriptions to all flows of the contract
};
// One for each change, in order, by one round trip.
awaitable<std::vector<Candidates>> find_candidates(pg::Pool& pool, const std::vector<FlowChange>& changes);
// A further page of the subscriptions to all flows of the contract.
awaitable<CandidatePage> more_candidates(pg::Pool& pool, const FlowChange& change, std::int64_t after);

struct FlowMails {
  FlowChange change;
  std::vector<std::int64_t> email_ids;
};
// Adds a mail to each address that does not have it yet, in one commit. Returns how many were added; nullopt, also
// below: the claim is lost. What was added before that stays, and is not added again.
awaitable<std::optional<std::int64_t>> add_flow_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                      std::vector<FlowMails> mails);

// Stops the mails about the change that have not left, and adds a correction for each one that has, or may have: at
// most `limit` of them. Returns how many there were. Requires: change.retracted.
awaitable<std::optional<std::int64_t>> retract_flow_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                          const FlowChange& change, std::int64_t limit);

// An event for the operators.
struct OperatorEvent {
  std::int64_t seq = 0;
  std::string type;
  std::string subject;
  TimePoint at;
  std::string data;  // JSON
};
awaitable<std::optional<std::int64_t>> add_operator_mails(pg::Pool& pool, const outbox::Claim& claim,
                                                          OperatorEvent event, std::vector<std::string> addresses);

}  // namespace fencepost::notify
