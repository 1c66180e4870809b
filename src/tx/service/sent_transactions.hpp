// Transactions that this node has broadcast, by hash, so that the hashes of a new block need not be looked up. Only a
// hint: steps check each of them, and a hash that is not here is looked up. Not thread-safe: on the chain's loop.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "runtime/steady_clock.hpp"
#include "tx/store/work_store.hpp"

namespace fencepost::tx {

class SentTransactions {
 public:
  // Remembers the last `limit` transactions.
  explicit SentTransactions(std::size_t limit, const SteadyClock& clock = SteadyClock::real())
      : limit_(limit), clock_(clock) {}

  // `match` is the transaction as it is stored now, without a receipt; it was first claimed at `claimed_at`.
  void add(Match match, SteadyClock::TimePoint claimed_at);
  // Returns it and forgets it: whatever is stored next, this is no longer how the transaction is.
  std::optional<Match> take(const std::string& tx_hash);
  // After a reorg: what was stored since may have been taken back.
  void forget_all();

 private:
  struct Sent {
    Match match;
    SteadyClock::TimePoint claimed_at;
  };

  const std::size_t limit_;
  const SteadyClock& clock_;
  std::unordered_map<std::string, Sent> by_hash_;
  std::deque<std::string> order_;  // of the last `limit_` hashes, also of those that were taken
};

}  // namespace fencepost::tx
