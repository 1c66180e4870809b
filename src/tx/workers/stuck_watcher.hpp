// Watches each signer's lowest nonce without a receipt. After `stuck.after` the transaction is STUCK. If the chain
// counts the nonce as used and has none of our attempts, another sender has taken the nonce.
//
// Watches only the lowest nonce: transactions at higher nonces wait for it and are not stuck.
#pragma once

#include "runtime/worker.hpp"
#include "tx/model/finality.hpp"
#include "tx/service/chain_context.hpp"
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
  };

  awaitable<Worker::Next> watch();
  awaitable<bool> look_at_nonces(std::vector<OpenHead> suspicious);
  bool is_overdue(const OpenHead& head) const;
  void take_turns(std::vector<OpenHead>& suspicious);

  // Returns whether the transaction ended, so that the signer has another lowest nonce now.
  awaitable<bool> examine(OpenHead head, std::int64_t nonce_at_head, std::size_t endpoint);
  // nullopt when the endpoint did not answer every request: then nothing may be decided.
  awaitable<std::optional<Evidence>> gather(const OpenHead& head, const std::vector<AttemptView>& attempts,
                                            std::int64_t nonce_at_head, std::size_t endpoint);
  awaitable<std::optional<std::int64_t>> nonce_at_final(const std::string& signer, std::int64_t final_number,
                                                        std::size_t endpoint);
  awaitable<bool> says_mined(const std::string& tx_hash, std::size_t endpoint);
  // nullopt when the decision changes nothing.
  std::optional<Step> step_for(const Decision& decision, const OpenHead& head, const std::vector<AttemptView>& attempts,
                               const Evidence& evidence) const;

  ChainContext& chain_;
  std::size_t turn_ = 0;
  Worker worker_;
};

}  // namespace fencepost::tx
