#include "tx/service/give_up.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>

namespace fencepost::tx {
namespace {

Error refused(std::string why, std::string message) {
  return conflict("give_up_refused", "the transaction was not given up: " + std::move(message))
      .with("why", std::move(why));
}

Error unproven(std::string message) {
  return unavailable("rpc_unavailable", "the transaction was not given up: " + std::move(message))
      .after(std::chrono::seconds(5));
}

// One endpoint's answers about one nonce.
class TakenProof {
 public:
  TakenProof(ChainContext& chain, std::size_t endpoint, SignerKey key, std::int64_t nonce, std::int64_t final_number)
      : chain_(chain),
        endpoint_(endpoint),
        status_(chain.connector.endpoint_status(endpoint)),
        key_(std::move(key)),
        nonce_(nonce),
        final_number_(final_number) {}

  awaitable<Result<boost::json::object>> ask(std::vector<std::string> hashes) {
    if (status_.wrong_chain) co_return fail(unproven_here("it is on another chain"));
    if (status_.behind) co_return fail(unproven_here("it is behind the others"));
    const auto count = co_await count_at_final();
    if (!count) co_return fail(count.error());
    if (*count <= nonce_) {
      co_return fail(
          refused("not_taken", fmt::format("endpoint {} does not count nonce {} as used at block {}, which is final",
                                           status_.label, nonce_, final_number_))
              .with("endpoint", status_.label)
              .with("chainNonce", std::to_string(*count))
              .with("finalBlock", std::to_string(final_number_)));
    }
    const auto known = co_await chain_.connector.transactions(hashes, endpoint_);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      if (!known[i]) co_return fail(unproven_here("it does not answer"));
      if (!*known[i]) continue;
      co_return fail(refused("transaction_known", fmt::format("endpoint {} knows {}: wait, it may have been mined",
                                                              status_.label, hashes[i]))
                         .with("endpoint", status_.label)
                         .with("txHash", hashes[i]));
    }
    co_return boost::json::object{{"endpoint", status_.label}, {"chainNonce", *count}};
  }

 private:
  Error unproven_here(const std::string& why) const {
    return unproven(
               fmt::format("endpoint {} must confirm it, and {}; retry, or remove the endpoint", status_.label, why))
        .with("endpoint", status_.label);
  }

  // The signer's count at that block of the node's own branch; nothing when the endpoint cannot say.
  awaitable<std::optional<std::int64_t>> count_at(std::int64_t number, std::string* hash = nullptr) {
    const auto count = co_await chain_.connector.nonce_at(key_.signer, number, endpoint_);
    const auto blocks = co_await chain_.connector.blocks(number, 1, endpoint_);
    if (!count || !blocks || blocks->empty()) co_return std::nullopt;
    const auto& found = blocks->front().header.hash;
    if (co_await chain_.evm_chain.branch().contains(number, found) != true) co_return std::nullopt;
    if (hash != nullptr) *hash = found;
    co_return *count;
  }

  awaitable<Result<std::int64_t>> count_at_final() {
    if (const auto count = co_await count_at(final_number_)) co_return *count;
    auto& seen = chain_.endpoint_counts[endpoint_];
    while (const auto noted = seen.newest_until(key_.signer, final_number_)) {
      if (co_await chain_.evm_chain.branch().contains(noted->block_number, noted->block_hash) == true) {
        co_return noted->count;
      }
      seen.forget(key_.signer, *noted);
    }
    const auto* head = chain_.follower.window().head();
    if (head == nullptr) co_return fail(unproven("this node knows no block yet"));
    const auto number = head->number;
    std::string hash;
    const auto count = co_await count_at(number, &hash);
    if (!count) co_return fail(unproven_here("it does not answer, or follows another branch"));
    chain_.endpoint_counts[endpoint_].note(key_.signer, {number, hash, *count});
    co_return fail(unproven_here(fmt::format(
        "it does not have the state of block {}, which is final. Its count at block {} was noted: repeat this on the "
        "same node once that block is final",
        final_number_, number)));
  }

  ChainContext& chain_;
  std::size_t endpoint_;
  evm::EndpointStatus status_;
  SignerKey key_;
  std::int64_t nonce_;
  std::int64_t final_number_;
};

}  // namespace

awaitable<Result<GiveUpProof>> prove_taken(ChainContext& chain, ManagedTx tx, std::vector<AttemptView> attempts) {
  GiveUpProof proof;
  for (const auto& attempt : attempts) {
    if (attempt.kind == AttemptKind::kExternal) continue;
    if (chain.find_listing(attempt.tx_hash)) {
      co_return fail(refused("on_chain", "a block of this node's branch lists it; its receipt is only late")
                         .with("txHash", attempt.tx_hash));
    }
    proof.hashes.push_back(attempt.tx_hash);
  }
  const auto final = co_await chain.evm_chain.final_block();
  if (!final) co_return fail(unproven("no endpoint says which block is final; retry"));
  boost::json::array endpoints;
  for (std::size_t i = 0; i < chain.connector.endpoint_count(); ++i) {
    TakenProof endpoint(chain, i, tx.key, *tx.nonce, final->number);
    auto facts = co_await endpoint.ask(proof.hashes);
    if (!facts) co_return fail(facts.error());
    endpoints.push_back(std::move(*facts));
  }
  proof.facts = {{"nonce", *tx.nonce}, {"finalBlock", final->number}, {"endpoints", std::move(endpoints)}};
  co_return proof;
}

}  // namespace fencepost::tx
