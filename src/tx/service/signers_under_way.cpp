#include "tx/service/signers_under_way.hpp"

#include <algorithm>

namespace fencepost::tx {

void SignersUnderWay::begin(const std::string& signer, std::size_t count, std::int64_t nonce) {
  auto& state = signers_[signer];
  state.count += count;
  state.highest = std::max(state.highest, nonce);
}

void SignersUnderWay::hold(const std::string& signer) {
  if (const auto it = signers_.find(signer); it != signers_.end()) it->second.held = true;
}

bool SignersUnderWay::held(const std::string& signer) const {
  const auto it = signers_.find(signer);
  return it != signers_.end() && it->second.held;
}

void SignersUnderWay::look_later(const std::string& signer) {
  if (const auto it = signers_.find(signer); it != signers_.end()) it->second.look = true;
}

bool SignersUnderWay::draining(const std::string& signer) const {
  const auto it = signers_.find(signer);
  return it != signers_.end() && (it->second.held || it->second.look);
}

bool SignersUnderWay::end(const std::string& signer, std::size_t count) {
  const auto it = signers_.find(signer);
  it->second.count -= count;
  if (it->second.count > 0) return false;
  const bool look = it->second.look;
  signers_.erase(it);
  return look;
}

SignersUnderWay::Nonces SignersUnderWay::highest() const {
  Nonces out;
  for (const auto& [signer, state] : signers_) out.emplace(signer, state.highest);
  return out;
}

}  // namespace fencepost::tx
