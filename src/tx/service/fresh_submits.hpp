// Transactions whose nonce this node has just assigned, with all that their first broadcast needs, so that the
// submitter need not look them up. Only a hint: the claim checks each of them, and what is dropped here is found by
// query.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tx/store/work_store.hpp"

namespace fencepost::tx {

// Any thread may call its methods.
class FreshSubmits {
 public:
  // Holds at most `limit` transactions.
  explicit FreshSubmits(std::size_t limit) : limit_(limit) {}

  void add(std::vector<DueSubmit> work);

  struct Taken {
    std::vector<DueSubmit> work;      // each signer's in nonce order
    std::vector<std::string> unsure;  // signers that have work, and must be looked up
    bool more = false;                // the limit cut off
  };
  // At most `limit` transactions that may be sent now. A signer's transactions are known to be next only if all lower
  // nonces were accepted under the same lease (`accepted`); otherwise the signer is `unsure`.
  Taken take(std::size_t limit);

  // The chain has accepted each of the signer's transactions up to this nonce.
  void accepted(const SignerLease& lease, std::int64_t nonce);
  // A transaction of the signer was not accepted: its next ones must be looked up.
  void forget(const std::string& signer);

 private:
  struct Accepted {
    std::int64_t token;
    std::int64_t next;  // nonce
  };

  const std::size_t limit_;
  std::mutex mutex_;
  std::deque<DueSubmit> waiting_;
  std::set<std::string> unsure_;
  std::unordered_map<std::string, Accepted> accepted_;  // by signer: as many as the node has led
};

}  // namespace fencepost::tx
