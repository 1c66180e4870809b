#include "tx/service/cursor_reset.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>

namespace fencepost::tx {
namespace {

Result<void> check_plan(const ResetPlan& plan, std::int64_t next_nonce) {
  if (next_nonce >= plan.next_nonce) {
    return fail(reset_refused("not_below_cursor",
                              fmt::format("the cursor is at {}; it can only be moved down", plan.next_nonce))
                    .with("nextNonce", std::to_string(plan.next_nonce)));
  }
  if (plan.holders.size() > kMostReset || plan.hashes.size() > 4 * kMostReset) {
    return fail(reset_refused("too_many", fmt::format("more than {} transactions, or {} attempts, would be given up: "
                                                      "name a higher nonce first",
                                                      kMostReset, 4 * kMostReset)));
  }
  if (plan.sending) {
    return fail(reset_refused("sending", "a transaction above that nonce was broadcast a moment ago; retry in a minute")
                    .after(std::chrono::seconds(30)));
  }
  return {};
}

// The own branch is this node's view, whatever the endpoints say now.
awaitable<Result<void>> check_own_branch(ChainContext& chain, const ResetPlan& plan) {
  for (const auto& holder : plan.holders) {
    if (!holder.receipt_block || !holder.receipt_hash) continue;
    if (co_await chain.evm_chain.branch().contains(*holder.receipt_block, *holder.receipt_hash) != true) continue;
    co_return fail(reset_refused("on_chain", "a transaction above that nonce is in a block of this node's branch")
                       .with("txId", holder.tx_id.to_string())
                       .with("nonce", std::to_string(holder.nonce)));
  }
  for (const auto& hash : plan.hashes) {
    if (!chain.find_listing(hash)) continue;
    co_return fail(reset_refused("on_chain", "a block of this node's branch lists a transaction above that nonce")
                       .with("txHash", hash));
  }
  co_return Result<void>();
}

// One endpoint's answers.
class EndpointProof {
 public:
  EndpointProof(ChainContext& chain, std::size_t endpoint)
      : chain_(chain), endpoint_(endpoint), status_(chain.connector.endpoint_status(endpoint)) {}

  awaitable<Result<boost::json::object>> ask(const std::string& signer, std::int64_t next_nonce,
                                             const std::vector<std::string>& hashes) {
    for (const auto tag : {evm::NonceTag::kLatest, evm::NonceTag::kPending}) {
      const auto counts = co_await chain_.connector.nonces({signer}, tag, endpoint_);
      if (!counts.front()) co_return unanswered();
      if (*counts.front() != next_nonce) {
        co_return fail(refused("count_differs", "an endpoint counts other nonces as used")
                           .with("chainNonce", std::to_string(*counts.front()))
                           .with("tag", tag == evm::NonceTag::kLatest ? "latest" : "pending"));
      }
    }
    const auto known = co_await chain_.connector.transactions(hashes, endpoint_);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (!known[i]) co_return unanswered();
      if (!*known[i]) continue;
      co_return fail(
          refused("transaction_known",
                  "an endpoint still knows a transaction above that nonce, so it may be mined: cancel it, or "
                  "remove it from that endpoint's pool")
              .with("txHash", hashes[i]));
    }
    co_return boost::json::object{{"endpoint", status_.label}, {"latest", next_nonce}, {"pending", next_nonce}};
  }

 private:
  Error refused(std::string why, std::string message) const {
    return reset_refused(std::move(why), std::move(message)).with("endpoint", status_.label);
  }
  // Also one that has failed for long: it may know what the others have forgotten.
  std::unexpected<Error> unanswered() const {
    return fail(refused("endpoint_silent",
                        "an endpoint did not answer, so it may know such a transaction; retry, or remove the endpoint")
                    .after(std::chrono::seconds(5)));
  }

  ChainContext& chain_;
  std::size_t endpoint_;
  evm::EndpointStatus status_;
};

}  // namespace

Error reset_refused(std::string why, std::string message) {
  return conflict("reset_refused", "the cursor was not moved: " + std::move(message)).with("why", std::move(why));
}

awaitable<Result<boost::json::object>> prove_reset(ChainContext& chain, SignerKey key, std::int64_t next_nonce,
                                                   ResetPlan plan) {
  if (const auto fits = check_plan(plan, next_nonce); !fits) co_return fail(fits.error());
  if (const auto off = co_await check_own_branch(chain, plan); !off) co_return fail(off.error());
  boost::json::array endpoints;
  for (std::size_t i = 0; i < chain.connector.endpoint_count(); ++i) {
    if (chain.connector.endpoint_status(i).wrong_chain) continue;
    EndpointProof endpoint(chain, i);
    auto facts = co_await endpoint.ask(key.signer, next_nonce, plan.hashes);
    if (!facts) co_return fail(facts.error());
    endpoints.push_back(std::move(*facts));
  }
  if (endpoints.empty()) co_return fail(reset_refused("no_endpoint", "no endpoint answered; retry"));
  co_return boost::json::object{{"nextNonce", next_nonce},
                                {"was", plan.next_nonce},
                                {"transactions", plan.holders.size()},
                                {"hashes", plan.hashes.size()},
                                {"endpoints", std::move(endpoints)}};
}

}  // namespace fencepost::tx
