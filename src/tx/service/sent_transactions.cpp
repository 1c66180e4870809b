#include "tx/service/sent_transactions.hpp"

#include <chrono>
#include <utility>

namespace fencepost::tx {

void SentTransactions::add(Match match, SteadyClock::TimePoint claimed_at) {
  auto hash = match.attempt_hash;
  by_hash_.insert_or_assign(hash, Sent{std::move(match), claimed_at});
  order_.push_back(std::move(hash));
  if (order_.size() <= limit_) return;
  by_hash_.erase(order_.front());
  order_.pop_front();
}

std::optional<Match> SentTransactions::take(const std::string& tx_hash) {
  auto sent = by_hash_.extract(tx_hash);
  if (sent.empty()) return std::nullopt;
  auto [match, claimed_at] = std::move(sent.mapped());
  match.since_submit = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now() - claimed_at);
  return match;
}

void SentTransactions::forget_all() {
  by_hash_.clear();
  order_.clear();
}

}  // namespace fencepost::tx
