#include "tx/service/signer_hints.hpp"

namespace fencepost::tx {

void SignerHints::add(const SignerHint& hint) {
  const std::lock_guard lock(mutex_);
  if (!hint) any_ = true;
  if (hint) signers_.insert(hint->begin(), hint->end());
}

SignerHint SignerHints::take() {
  const std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  const bool all = any_ || now - looked_at_all_ >= interval_;
  SignerHint hint = std::vector(signers_.begin(), signers_.end());
  signers_.clear();
  if (!all) return hint;
  any_ = false;
  looked_at_all_ = now;
  return std::nullopt;
}

}  // namespace fencepost::tx
