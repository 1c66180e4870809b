// Signs with a key in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evm/keys/private_key.hpp"
#include "evm/keys/signer.hpp"
#include "runtime/runtime.hpp"

namespace fencepost::evm {

// Signs on the runtime's CPU pool, since some tens of microseconds per signature add up under load: one hop for one
// transaction or for a whole batch. A cancelled caller returns at once; the pool keeps the key alive until it has
// finished.
class LocalSigner final : public Signer {
 public:
  LocalSigner(Runtime& runtime, PrivateKey key);

  const std::string& address() const override { return address_; }
  // The only error is kInvalid `bad_transaction` (check_transaction).
  awaitable<Result<SignedTransaction>> sign(Transaction transaction) override;
  awaitable<std::vector<Result<SignedTransaction>>> sign_all(std::vector<Transaction> transactions) override;

 private:
  Runtime& runtime_;
  std::shared_ptr<const PrivateKey> key_;
  std::string address_;
};

}  // namespace fencepost::evm
