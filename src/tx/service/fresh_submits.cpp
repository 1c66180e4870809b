#include "tx/service/fresh_submits.hpp"

namespace fencepost::tx {

void FreshSubmits::add(std::vector<DueSubmit> work) {
  const std::lock_guard lock(mutex_);
  for (auto& tx : work) {
    if (waiting_.size() < limit_) {
      waiting_.push_back(std::move(tx));
    } else {
      unsure_.insert(std::move(tx.lease.key.signer));
    }
  }
}

FreshSubmits::Taken FreshSubmits::take(std::size_t limit) {
  const std::lock_guard lock(mutex_);
  Taken taken;
  std::unordered_map<std::string, std::int64_t> next;
  while (!waiting_.empty() && taken.work.size() < limit) {
    auto tx = std::move(waiting_.front());
    waiting_.pop_front();
    const auto& signer = tx.lease.key.signer;
    const auto known = accepted_.find(signer);
    if (known == accepted_.end() || known->second.token != tx.lease.fencing_token) {
      unsure_.insert(signer);
      continue;
    }
    auto& expected = next.try_emplace(signer, known->second.next).first->second;
    if (tx.nonce < expected) continue;  // was looked up in the meantime, and sent
    if (tx.nonce > expected) {
      unsure_.insert(signer);
      continue;
    }
    ++expected;
    taken.work.push_back(std::move(tx));
  }
  taken.unsure.assign(unsure_.begin(), unsure_.end());
  unsure_.clear();
  taken.more = !waiting_.empty();
  return taken;
}

void FreshSubmits::accepted(const SignerLease& lease, std::int64_t nonce) {
  const std::lock_guard lock(mutex_);
  accepted_.insert_or_assign(lease.key.signer, Accepted{lease.fencing_token, nonce + 1});
}

void FreshSubmits::forget(const std::string& signer) {
  const std::lock_guard lock(mutex_);
  accepted_.erase(signer);
}

}  // namespace fencepost::tx
