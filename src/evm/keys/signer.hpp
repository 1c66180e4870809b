// Signs transactions for one address. Each implementation is one file: a key in this process (LocalSigner), a remote
// signer or a KMS.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "evm/transaction.hpp"
#include "runtime/async.hpp"

namespace fencepost::evm {

class Signer {
 public:
  virtual ~Signer() = default;
  // Lowercase, with 0x.
  virtual const std::string& address() const = 0;
  // Any loop. Errors: kUnavailable `signer_unavailable` when a retry may succeed, any other error when it will not.
  virtual awaitable<Result<SignedTransaction>> sign(Transaction transaction) = 0;
  // One result for each transaction, in order.
  virtual awaitable<std::vector<Result<SignedTransaction>>> sign_all(std::vector<Transaction> transactions) = 0;
};

}  // namespace fencepost::evm
