// The first broadcast: prices, signs, stores the bytes and their hash (the claim), and only then sends. A node that
// takes over after a crash finds the same bytes and sends the same transaction.
//
// A transaction whose fee was refused is signed again at the current price, but only while it is certain that no
// endpoint has accepted it.
//
// Batches follow each other in two lanes, so that one lane waits for the database while the other signs and sends. A
// signer belongs to one lane: its transactions are never in two batches at once.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/worker.hpp"
#include "tx/service/chain_context.hpp"
#include "tx/service/fresh_submits.hpp"
#include "tx/store/work_store.hpp"

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

    std::int64_t number;
    FreshSubmits fresh;
    SignerHints hints;
    Worker worker;
  };
  // The transactions of one batch, by signer.
  struct Sending {
    SignerLease lease;
    std::int64_t last = 0;  // nonce
    std::size_t left = 0;   // not accepted yet
  };

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
  // Claimed, and about to be sent.
  struct Outgoing {
    DueSubmit due;
    std::string raw;
    std::string tx_hash;
    bool sent_before = false;  // this or an earlier leader may have sent the bytes, with an unknown outcome
    std::int64_t claims = 0;   // number of claims of these bytes, including this one
    SteadyClock::TimePoint claimed_at;
  };

  struct Hopeless {
    DueSubmit due;
    SubState reason = SubState::kInvalid;
    std::string message;
  };
  struct Unsendable {
    std::vector<Step> steps;
    std::vector<Hopeless> hopeless;
  };

  awaitable<Worker::Next> submit_due(Lane& lane);
  // Sets `full` if there is more.
  awaitable<std::vector<DueSubmit>> find_due(Lane& lane, bool& full);
  awaitable<std::vector<Outgoing>> sign_and_claim(std::vector<DueSubmit> due);
  void leave_keyless(std::vector<DueSubmit>& due, Unsendable& unsendable) const;
  // Both add each transaction that they leave out to `unsendable`.
  awaitable<std::vector<Priced>> price(std::vector<DueSubmit> due, Unsendable& unsendable);
  awaitable<std::vector<Signed>> sign(std::vector<Priced> priced, Unsendable& unsendable);
  awaitable<std::vector<Result<evm::SignedTransaction>>> sign_for(const std::string& signer,
                                                                  std::vector<evm::Transaction> transactions);
  awaitable<std::vector<Outgoing>> claim(std::vector<Signed> fresh);
  awaitable<std::vector<Outgoing>> claim_again(std::vector<DueSubmit> due);
  // Returns the signers of the accepted transactions, each as often as it has one.
  awaitable<std::vector<std::string>> send(std::vector<Outgoing> out);
  awaitable<Step> judge(const Outgoing& tx, const evm::SendResult& result);
  Step accepted(const Outgoing& tx, std::string why) const;
  Step waits(const DueSubmit& due, SubState sub_state, std::string message) const;
  // Retries soon an action that began at `began` and failed, if all endpoints failed then and one answers since.
  void retry_after_outage(Step& step, SteadyClock::TimePoint began) const;
  Step stuck(const DueSubmit& due, SubState sub_state, std::string message) const;
  // Ends each transaction that no endpoint has and that can never be sent, or makes it STUCK.
  awaitable<> give_up(std::vector<Hopeless> hopeless);
  void remember(const Outgoing& tx);
  void count(std::string_view result, std::size_t n);

  ChainContext& chain_;
  std::array<Lane, kSubmitLanes> lanes_;
};

}  // namespace fencepost::tx
