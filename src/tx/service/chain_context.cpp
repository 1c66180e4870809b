#include "tx/service/chain_context.hpp"

#include <algorithm>
#include <set>

#include "pg/halving.hpp"
#include "runtime/log.hpp"
#include "tx/service/known_attempts.hpp"

namespace fencepost::tx {
namespace {

void drop_lost(LeaseManager& leases, const std::vector<SignerLease>& fenced) {
  std::set<SignerKey> reported;
  for (const auto& lease : fenced) {
    if (reported.insert(lease.key).second) leases.lost(lease);
  }
}

// Whether a person may have to act: the transaction is STUCK, or waits for a lower price.
bool needs_attention(const Step& step) {
  return step.to == TxState::kStuck || step.sub_state == SubState::kFeeAboveCeiling;
}

StepOutcome unstorable(const Step& step, const std::exception_ptr& refused) {
  log::error("a step cannot be stored", error_of(refused), {{"txId", step.tx_id.to_string()}, {"why", step.why}});
  return StepOutcome::kMoved;
}

ClaimResult unclaimable(const Claim& claim, const std::exception_ptr& refused) {
  log::error("a signed transaction cannot be stored", error_of(refused), {{"txId", claim.tx_id.to_string()}});
  return {.outcome = StepOutcome::kMoved};
}

}  // namespace

awaitable<std::vector<StepOutcome>> ChainContext::apply(std::vector<Step> steps) {
  if (steps.empty()) co_return std::vector<StepOutcome>();
  const auto write = [this](std::span<const Step> some) {
    return apply_steps(database.pool(), node(), {some.begin(), some.end()});
  };
  const auto written = co_await pg::write_or_halve<StepOutcome>(std::span<const Step>(steps), write);
  std::vector<StepOutcome> outcomes;
  std::vector<SignerLease> fenced;
  std::vector<Uuid> changed;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    outcomes.push_back(written[i] ? *written[i] : unstorable(step, written[i].error()));
    if (outcomes[i] == StepOutcome::kFenced) fenced.push_back(step.lease);
    if (outcomes[i] != StepOutcome::kDone) continue;
    changed.push_back(step.tx_id);
    if (step.receipt) {
      if (step.tx_hash) sent.take(*step.tx_hash);
      on_mined(step.receipt->block);
    }
    if (step.quiet) continue;
    const auto level = needs_attention(step) ? log::Level::kWarn : log::Level::kInfo;
    log::write(level, "transaction moved",
               {{"txId", step.tx_id.to_string()},
                {"signer", step.lease.key.signer},
                {"nodeId", node()},
                {"fencingToken", step.lease.fencing_token},
                {"from", kManagedTx.name(step.from)},
                {"to", kManagedTx.name(step.to)},
                {"why", step.why}});
  }
  drop_lost(leases, fenced);
  changes.raise(changed);
  co_return outcomes;
}

awaitable<std::vector<ClaimResult>> ChainContext::claim(std::vector<Claim> claims) {
  if (claims.empty()) co_return std::vector<ClaimResult>();
  const auto write = [this](std::span<const Claim> some) {
    return claim_attempts(database.pool(), node(), {some.begin(), some.end()}, claim_patience());
  };
  const auto written = co_await pg::write_or_halve<ClaimResult>(std::span<const Claim>(claims), write);
  std::vector<ClaimResult> results;
  std::vector<SignerLease> fenced;
  std::vector<std::pair<Uuid, std::string>> stored;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    results.push_back(written[i] ? *written[i] : unclaimable(claims[i], written[i].error()));
    if (results[i].outcome == StepOutcome::kFenced) fenced.push_back(claims[i].lease);
    if (results[i].outcome != StepOutcome::kDone) continue;
    stored.emplace_back(claims[i].tx_id, claims[i].tx_hash);
    log::info("transaction signed", {{"txId", claims[i].tx_id.to_string()},
                                     {"signer", claims[i].lease.key.signer},
                                     {"nodeId", node()},
                                     {"fencingToken", claims[i].lease.fencing_token},
                                     {"txHash", claims[i].tx_hash}});
  }
  drop_lost(leases, fenced);
  hashes.announce(std::move(stored));
  co_return results;
}

awaitable<std::vector<Result<std::int64_t>>> ChainContext::chain_nonces(std::vector<std::string> signers,
                                                                        evm::NonceTag tag) {
  const auto* own = follower.window().head();
  const auto known = std::max(own == nullptr ? 0 : own->number, connector.highest_head().value_or(0));
  const auto head = co_await connector.head_reaching(known);
  if (!head) co_return std::vector<Result<std::int64_t>>(signers.size(), fail(head.error()));
  co_return co_await connector.nonces(std::move(signers), tag, head->endpoint);
}

awaitable<StepOutcome> ChainContext::reject(Rejection rejection) {
  if (co_await may_be_known(*this, rejection.tx_id)) co_return StepOutcome::kMoved;
  const auto outcome = co_await tx::reject(database.pool(), node(), rejection);
  if (outcome == StepOutcome::kFenced) leases.lost(rejection.lease);
  if (outcome != StepOutcome::kDone) co_return outcome;
  log::warn("transaction rejected, and its nonce released", {{"txId", rejection.tx_id.to_string()},
                                                             {"signer", rejection.lease.key.signer},
                                                             {"nodeId", node()},
                                                             {"fencingToken", rejection.lease.fencing_token},
                                                             {"reason", kSubStates.name(rejection.reason)},
                                                             {"detail", rejection.message}});
  changes.raise(std::span(&rejection.tx_id, 1));
  wake_promoter(std::vector{rejection.lease.key.signer});
  co_return outcome;
}

std::chrono::milliseconds ChainContext::retry_delay(std::int32_t tries) {
  return std::chrono::seconds(std::min<std::int64_t>(60, std::int64_t{1} << std::clamp(tries, 0, 6)));
}

}  // namespace fencepost::tx
