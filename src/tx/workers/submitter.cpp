#include "tx/workers/submitter.hpp"

#include <algorithm>
#include <map>

#include "runtime/gather.hpp"
#include "runtime/log.hpp"
#include "runtime/test_point.hpp"
#include "tx/model/payload.hpp"
#include "tx/service/submit_steps.hpp"

namespace fencepost::tx {
namespace {

constexpr std::size_t kSubmitsAtOnce = 1'000;
constexpr std::chrono::seconds kSubmitInterval{1};
constexpr std::size_t kFreshLimit = 10'000;

// Whether to sign: never signed yet, or the fee was refused and no endpoint can have the transaction.
bool needs_signing(const DueSubmit& due) {
  if (!due.raw) return true;
  const bool fee = due.sub_state == SubState::kFeeTooLow || due.sub_state == SubState::kUnderpriced;
  return fee && due.outcome == AttemptOutcome::kRefused;
}

}  // namespace

Submitter::Lane::Lane(Submitter& submitter, std::int64_t which)
    : number(which),
      fresh(kFreshLimit),
      hints(kSubmitInterval),
      broadcaster(submitter.chain_, under_way, kSubmitsAtOnce,
                  {.on_room = [this] { worker.wake(); },
                   .on_done =
                       [this](const std::string& signer, std::size_t count, bool accepted) {
                         if (!accepted) hold(signer);
                         end(signer, count);
                       }}),
      worker(
          submitter.chain_.home,
          {.name = "tx_submitter",
           .chain = submitter.chain_.evm_chain.name(),
           .interval = kSubmitInterval,
           .stop_grace = ChainContext::kStopGrace},
          [&submitter, this] { return submitter.submit_due(*this); }, submitter.chain_.metrics) {}

void Submitter::Lane::hold(const std::string& signer) {
  under_way.hold(signer);
  fresh.forget(signer);
}

void Submitter::Lane::look_later(const std::string& signer) {
  under_way.look_later(signer);
  fresh.forget(signer);
}

void Submitter::Lane::end(const std::string& signer, std::size_t count) {
  if (!under_way.end(signer, count)) return;
  hints.add(std::vector{signer});
  worker.wake();
}

// What was claimed is broadcast, too, if there is time.
awaitable<> Submitter::Lane::stop() {
  const auto begin = std::chrono::steady_clock::now();
  co_await worker.stop();
  const auto taken = std::chrono::floor<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  co_await broadcaster.stop(std::max(ChainContext::kStopGrace - taken, std::chrono::milliseconds(0)));
}

// The transactions of one batch by signer, from the time when they are taken. Those that are not handed to the
// broadcaster end with the batch.
class Submitter::Taken {
 public:
  Taken(Lane& lane, const std::vector<DueSubmit>& due) : lane_(lane) {
    for (const auto& tx : due) {
      auto& signer = signers_[tx.lease.key.signer];
      signer.lease = tx.lease;
      signer.last = std::max(signer.last, tx.nonce);
      ++signer.left;
    }
    for (const auto& [signer, some] : signers_) lane_.under_way.begin(signer, some.left, some.last);
  }
  ~Taken() {
    for (const auto& [signer, some] : signers_) {
      if (some.left > 0) lane_.end(signer, some.left);
    }
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

  void hand_over(std::vector<Outgoing> out) {
    for (const auto& tx : out) --signers_[tx.due.lease.key.signer].left;
    lane_.broadcaster.add(std::move(out));
    for (const auto& [signer, some] : signers_) {
      if (some.left == 0 && !lane_.under_way.draining(signer)) {
        lane_.fresh.claimed(some.lease, some.last);
      } else {
        lane_.fresh.forget(signer);
      }
    }
  }

 private:
  struct Signer {
    SignerLease lease;
    std::int64_t last = 0;  // nonce
    std::size_t left = 0;   // not handed over
  };

  Lane& lane_;
  std::map<std::string, Signer> signers_;
};

Submitter::Submitter(ChainContext& chain)
    : chain_(chain),
      fees_(make_fee_policy(chain.connector, chain.follower, chain.options.fees)),
      lanes_{{Lane(*this, 0), Lane(*this, 1)}} {}

void Submitter::start() {
  for (auto& lane : lanes_) {
    lane.worker.start();
    lane.broadcaster.start();
  }
}

awaitable<> Submitter::stop() {
  std::vector<awaitable<>> stops;
  stops.reserve(lanes_.size());
  for (auto& lane : lanes_) stops.push_back(lane.stop());
  co_await gather(std::move(stops));
}

void Submitter::wake(const SignerHint& hint) {
  std::array<SignerHint, kSubmitLanes> hints;
  if (hint) {
    for (auto& some : hints) some.emplace();
    for (const auto& signer : *hint) hints[static_cast<std::size_t>(submit_lane_of(signer))]->push_back(signer);
  }
  for (auto& lane : lanes_) {
    const auto& some = hints[static_cast<std::size_t>(lane.number)];
    if (some && some->empty()) continue;
    lane.hints.add(some);
    lane.worker.wake();
  }
}

void Submitter::add(std::vector<DueSubmit> numbered) {
  std::array<std::vector<DueSubmit>, kSubmitLanes> fresh;
  for (auto& tx : numbered) {
    fresh[static_cast<std::size_t>(submit_lane_of(tx.lease.key.signer))].push_back(std::move(tx));
  }
  for (auto& lane : lanes_) {
    auto& some = fresh[static_cast<std::size_t>(lane.number)];
    if (some.empty()) continue;
    lane.fresh.add(std::move(some));
    lane.worker.wake();
  }
}

// A signer that has to be looked up is sent as the query shows it: with all that is due, in order. While some of its
// transactions are under way, the query does not show that: such a signer is looked up later.
awaitable<std::vector<DueSubmit>> Submitter::find_due(Lane& lane, std::size_t limit, bool& full) {
  auto [due, unsure, more] = lane.fresh.take(limit);
  full = more;
  lane.hints.add(std::move(unsure));
  auto hint = lane.hints.take();
  if (hint) {
    std::erase_if(*hint, [&](const std::string& signer) {
      if (!lane.under_way.contains(signer)) return false;
      lane.look_later(signer);
      return true;
    });
    if (hint->empty()) co_return std::move(due);
  }
  const auto under_way = hint ? SignersUnderWay::Nonces() : lane.under_way.highest();
  auto found = co_await due_submits(chain_.database.pool(), chain_.node(), chain_.chain_id(), hint, limit, lane.number);
  if (found.size() == limit) {
    full = true;
    lane.hints.add(hint);
  }
  std::erase_if(due, [&](const DueSubmit& tx) {
    const auto& signer = tx.lease.key.signer;
    return hint ? std::ranges::binary_search(*hint, signer) : !under_way.contains(signer);
  });
  std::erase_if(found, [&](const DueSubmit& tx) {
    const auto highest = under_way.find(tx.lease.key.signer);
    if (highest == under_way.end()) return false;
    if (tx.nonce <= highest->second) lane.look_later(tx.lease.key.signer);  // higher ones will come from memory
    return true;
  });
  std::ranges::move(found, std::back_inserter(due));
  co_return std::move(due);
}

awaitable<Worker::Next> Submitter::submit_due(Lane& lane) {
  const auto room = lane.broadcaster.room();
  if (room == 0) co_return Worker::Next::kRest;  // the broadcaster wakes this worker
  bool full = false;
  auto due = co_await find_due(lane, room, full);
  if (due.empty()) co_return full ? Worker::Next::kAgain : Worker::Next::kRest;
  Taken taken(lane, due);
  std::vector<DueSubmit> fresh, again;
  for (auto& tx : due) (needs_signing(tx) ? fresh : again).push_back(std::move(tx));

  auto out = co_await sign_and_claim(std::move(fresh));
  auto resent = co_await claim_again(std::move(again));
  std::ranges::move(resent, std::back_inserter(out));
  std::ranges::sort(out, [](const Outgoing& a, const Outgoing& b) {
    return std::tie(a.due.lease.key.signer, a.due.nonce) < std::tie(b.due.lease.key.signer, b.due.nonce);
  });
  const bool any = !out.empty();
  taken.hand_over(std::move(out));
  co_return full&& any ? Worker::Next::kAgain : Worker::Next::kRest;
}

awaitable<std::vector<Outgoing>> Submitter::sign_and_claim(std::vector<DueSubmit> due) {
  if (due.empty()) co_return std::vector<Outgoing>();
  std::vector<Step> unsendable;
  auto priced = co_await price(std::move(due), unsendable);
  auto all = co_await sign(std::move(priced), unsendable);

  // Signing is deterministic: at an unchanged price the bytes equal the stored ones.
  std::vector<Signed> fresh;
  std::vector<DueSubmit> unchanged;
  for (auto& tx : all) {
    if (tx.tx_hash == tx.due.tx_hash) {
      unchanged.push_back(std::move(tx.due));
    } else {
      fresh.push_back(std::move(tx));
    }
  }
  auto out = co_await claim(std::move(fresh));
  co_await chain_.apply(std::move(unsendable));
  auto again = co_await claim_again(std::move(unchanged));
  std::ranges::move(again, std::back_inserter(out));
  co_return out;
}

awaitable<std::vector<Submitter::Priced>> Submitter::price(std::vector<DueSubmit> due, std::vector<Step>& unsendable) {
  std::vector<Payload> payloads;
  payloads.reserve(due.size());
  for (const auto& tx : due) payloads.push_back(stored_payload(tx.payload));
  const auto offers = co_await fees_->offers(payloads);
  std::vector<Priced> out;
  for (std::size_t i = 0; i < due.size(); ++i) {
    const auto& offer = offers[i];
    if (offer) {
      auto transaction = build_transaction(payloads[i], chain_.chain_id(), due[i].nonce,
                                           static_cast<std::uint64_t>(due[i].gas_limit), *offer);
      out.push_back({std::move(due[i]), *offer, std::move(transaction)});
    } else if (offer.error().kind == ErrorKind::kUnavailable) {
      unsendable.push_back(submit_waits(due[i], SubState::kFeesUnknown, offer.error().message));
    } else {
      unsendable.push_back(submit_stuck(due[i], SubState::kNoDynamicFees, offer.error().message));
    }
  }
  co_return out;
}

awaitable<std::vector<Submitter::Signed>> Submitter::sign(std::vector<Priced> priced, std::vector<Step>& unsendable) {
  std::map<std::string, std::vector<Priced>> by_signer;
  for (auto& tx : priced) by_signer[tx.due.lease.key.signer].push_back(std::move(tx));
  std::vector<Signed> out;
  for (auto& [signer, items] : by_signer) {
    std::vector<evm::Transaction> transactions;
    for (auto& item : items) transactions.push_back(std::move(item.transaction));
    const auto results = co_await sign_for(signer, std::move(transactions));
    for (std::size_t i = 0; i < items.size(); ++i) {
      auto& [due, fees, transaction] = items[i];
      const auto& result = results[i];
      if (result) {
        out.push_back({std::move(due), fees, result->raw, to_hex0x(result->hash)});
      } else if (result.error().kind == ErrorKind::kUnavailable) {
        unsendable.push_back(submit_waits(due, SubState::kSignerUnavailable, result.error().message));
      } else {
        unsendable.push_back(submit_stuck(due, SubState::kBadTransaction, result.error().message));
      }
    }
  }
  co_return out;
}

awaitable<std::vector<Result<evm::SignedTransaction>>> Submitter::sign_for(const std::string& signer,
                                                                           std::vector<evm::Transaction> transactions) {
  if (auto* key = chain_.keys.find(signer)) co_return co_await key->sign_all(std::move(transactions));
  const Result<evm::SignedTransaction> none = fail(
      unavailable("signer_unavailable", "this node has no key for the signer; add the key or run a node that has it"));
  co_return std::vector(transactions.size(), none);
}

// The bytes and their hash are stored before any endpoint sees them.
awaitable<std::vector<Outgoing>> Submitter::claim(std::vector<Signed> fresh) {
  std::vector<Claim> claims;
  claims.reserve(fresh.size());
  for (const auto& tx : fresh) {
    claims.push_back({.lease = tx.due.lease,
                      .tx_id = tx.due.tx_id,
                      .from = TxState::kAllocated,
                      .previous_hash = tx.due.tx_hash,
                      .tx_hash = tx.tx_hash,
                      .kind = AttemptKind::kOriginal,
                      .raw = tx.raw,
                      .fees = fees_json(tx.fees)});
  }
  const auto claimed = co_await chain_.claim(std::move(claims));
  test_point("submitter.claimed");
  std::vector<Outgoing> out;
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    if (claimed[i].outcome != StepOutcome::kDone) continue;
    out.push_back({.due = std::move(fresh[i].due),
                   .raw = to_hex0x(fresh[i].raw),
                   .tx_hash = std::move(fresh[i].tx_hash),
                   .sent_before = false,
                   .claims = claimed[i].claims,
                   .claimed_at = SteadyClock::real().now()});
  }
  co_return out;
}

// The bytes are already stored: claims only the next broadcast.
awaitable<std::vector<Outgoing>> Submitter::claim_again(std::vector<DueSubmit> due) {
  std::vector<Outgoing> out;
  std::vector<Step> steps;
  for (auto& tx : due) {
    Step step(tx.lease, tx.tx_id, TxState::kAllocated, TxState::kAllocated, "sent again");
    step.quiet = true;
    step.expect_receipt_hash = "";
    step.due_in = chain_.claim_patience();
    // The old answer no longer counts, and the new one only if no claim follows this one (docs/correctness.md).
    step.attempt_outcome = AttemptOutcome::kUnknown;
    step.begins_broadcast = true;
    step.expect_claims = tx.claims;
    steps.push_back(std::move(step));
  }
  const auto outcomes = co_await chain_.apply(std::move(steps));
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (outcomes[i] != StepOutcome::kDone) continue;
    out.push_back({.due = due[i],
                   .raw = *due[i].raw,
                   .tx_hash = *due[i].tx_hash,
                   .sent_before = due[i].outcome != AttemptOutcome::kRefused,
                   .claims = due[i].claims + 1,
                   .claimed_at = SteadyClock::real().now()});
  }
  co_return out;
}

}  // namespace fencepost::tx
