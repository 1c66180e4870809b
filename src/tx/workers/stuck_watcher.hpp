// Watches each signer's lowest nonce without a receipt. After `stuck.after` the transaction is STUCK. If the chain
// counts the nonce as used and has none of our attempts, another sender has taken the nonce.
//
// A STUCK transaction that no endpoint has is ended as soon as its nonce can be released, or goes back to ALLOCATED
// when what it waited for is there: money, fees, the signer's key, an endpoint that answers (stuck_watcher_unsent.cpp).
//
// Watches only the lowest nonce: transactions at higher nonces wait for it and are not stuck.
//
// Such a transaction ends only after the transaction that took its nonce was found on the node's own branch, confirmed
// by a second endpoint if there is one, and stored as an external attempt. While it cannot be found, the transaction
// stays STUCK, and its error says why.
#pragma once

#include <map>

#include "base/clock.hpp"
#include "runtime/worker.hpp"
#include "tx/model/finality.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/nonce_history.hpp"
#include "tx/store/tx_store.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

class StuckWatcher {
 public:
  explicit StuckWatcher(ChainContext& chain);

  void start() { worker_.start(); }
  awaitable<> stop() { return worker_.stop(); }
  void wake() { worker_.wake(); }

 private:
  // What one endpoint and the node's own branch say about one nonce.
  struct Evidence {
    ChainFacts facts;
    std::optional<evm::Receipt> receipt;  // of an attempt, on the node's own branch
    std::string revert_reason;            // if that attempt reverted
  };

  awaitable<Worker::Next> watch();
  awaitable<> look_at_unsent(const std::vector<OpenHead>& heads);
  awaitable<> release_or_fill(OpenHead head, std::string message);
  // What a transaction would be sent for now.
  struct Offer {
    Uint256 value;
    std::uint64_t gas;
    Result<evm::Fees> price;
  };
  awaitable<std::optional<std::string>> why_it_may_go_on(OpenHead head, ManagedTx tx);
  bool may_try_again(const OpenHead& head) const;
  awaitable<Offer> current_price(ManagedTx tx);
  awaitable<bool> is_funded(OpenHead head, ManagedTx tx);
  awaitable<bool> look_at_nonces(std::vector<OpenHead> suspicious);
  bool is_overdue(const OpenHead& head) const;
  void take_turns(std::vector<OpenHead>& suspicious);

  // Returns whether the transaction ended, so that the signer has another lowest nonce now.
  awaitable<bool> examine(OpenHead head, std::int64_t nonce_at_head, std::size_t endpoint);
  // nullopt when the endpoint did not answer every request: then nothing may be decided.
  awaitable<std::optional<Evidence>> gather(const OpenHead& head, const std::vector<AttemptView>& attempts,
                                            std::int64_t nonce_at_head, std::size_t endpoint);
  // For external rows, which end by the count alone.
  awaitable<std::optional<std::int64_t>> count_at_final(const std::string& signer, std::int64_t final_number,
                                                        std::size_t endpoint);
  awaitable<> note_count(const std::string& signer, std::size_t endpoint);
  // Searches for the transaction that took the nonce, not too often, and adds what it finds to attempts and evidence.
  awaitable<> name_taker(const OpenHead& head, std::vector<AttemptView>& attempts, Evidence& evidence,
                         std::size_t endpoint);
  std::size_t endpoint_of_try(int tries, std::size_t first) const;
  // Why the search has found nothing; empty when there was none.
  std::string why_not_found(const OpenHead& head) const;
  awaitable<bool> says_mined(const std::string& tx_hash, std::size_t endpoint);
  // nullopt when the decision changes nothing.
  std::optional<Step> step_for(const Decision& decision, const OpenHead& head, const std::vector<AttemptView>& attempts,
                               const Evidence& evidence);

  struct Searched {
    std::chrono::steady_clock::time_point next;
    int tries = 0;
    std::string why;   // the last search found nothing, because …
    std::string told;  // … and this is stored
  };

  ChainContext& chain_;
  NonceHistory history_;
  std::map<Uuid, Searched> searched_;  // of the open heads of the last round
  std::size_t turn_ = 0;
  std::map<Uuid, SteadyClock::TimePoint> fill_tries_;  // bounded
  Worker worker_;
};

}  // namespace fencepost::tx
