// Whoever can sign for an address. A key in this process (LocalSigner), a remote signer or a KMS are one file each.
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
  // Any loop. Errors: kUnavailable `signer_unavailable` when it may work later, anything else when it will not.
  virtual awaitable<Result<SignedTransaction>> sign(Transaction transaction) = 0;
  // Several at once, in order; a signer that can batch overrides it.
  virtual awaitable<std::vector<Result<SignedTransaction>>> sign_all(std::vector<Transaction> transactions) = 0;
};

}  // namespace fencepost::evm
