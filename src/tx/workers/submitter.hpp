// The first broadcast: prices, signs, stores the bytes and their hash (the claim), and only then hands the transaction
// to the broadcaster, which sends it. A node that takes over after a crash finds the same bytes and sends the same
// transaction.
//
// A transaction whose fee was refused is signed again at the current price, but only while it is certain that no
// endpoint has accepted it.
//
// Two lanes sign side by side, and each signs its next batch while the last one is broadcast. A signer belongs to one
// lane, and a lane's broadcaster sends in the order of the claims: a signer's transactions go out in nonce order.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/fee_policy.hpp"
#include "tx/service/fresh_submits.hpp"
#include "tx/service/signers_under_way.hpp"
#include "tx/store/work_store.hpp"
#include "tx/workers/broadcaster.hpp"

namespace fencepost::tx {

class Submitter {
 public:
  explicit Submitter(ChainContext& chain);

  void start();
  awaitable<> stop();
  // Any thread. Looks up the signers' transactions.
  void wake(const SignerHint& hint);
  // Any thread. Sends transactions that were just given their nonce, without looking them up where that is safe.
  void add(std::vector<DueSubmit> numbered);

 private:
  struct Lane {
    Lane(Submitter& submitter, std::int64_t which);

    // Transactions of the signer were not accepted.
    void hold(const std::string& signer);
    // Looks the signer up as soon as nothing of it is under way.
    void look_later(const std::string& signer);
    // These transactions of the signer are done.
    void end(const std::string& signer, std::size_t count);
    awaitable<> stop();

    std::int64_t number;
    FreshSubmits fresh;
    SignerHints hints;
    SignersUnderWay under_way;
    Broadcaster broadcaster;
    Worker worker;
  };
  class Taken;

  struct Priced {
    DueSubmit due;
    evm::Fees fees;
    evm::Transaction transaction;
  };
  struct Signed {
    DueSubmit due;
    evm::Fees fees;
    Bytes raw;
    std::string tx_hash;
  };

  awaitable<Worker::Next> submit_due(Lane& lane);
  // Sets `full` if there is more.
  awaitable<std::vector<DueSubmit>> find_due(Lane& lane, std::size_t limit, bool& full);
  awaitable<std::vector<Outgoing>> sign_and_claim(std::vector<DueSubmit> due);
  // Both add a step to `unsendable` for each transaction that they leave out.
  awaitable<std::vector<Priced>> price(std::vector<DueSubmit> due, std::vector<Step>& unsendable);
  awaitable<std::vector<Signed>> sign(std::vector<Priced> priced, std::vector<Step>& unsendable);
  awaitable<std::vector<Result<evm::SignedTransaction>>> sign_for(const std::string& signer,
                                                                  std::vector<evm::Transaction> transactions);
  awaitable<std::vector<Outgoing>> claim(std::vector<Signed> fresh);
  awaitable<std::vector<Outgoing>> claim_again(std::vector<DueSubmit> due);

  ChainContext& chain_;
  std::unique_ptr<FeePolicy> fees_;
  std::array<Lane, kSubmitLanes> lanes_;
};

}  // namespace fencepost::tx
